package directory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
)

// listTimeout ends a list of a directory that has names without end and no objects.
const listTimeout = 5 * time.Minute

// List implements objects.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (found []objects.Info, more bool, err error) {
	if err := errors.Join(objects.CheckList(prefix, after, limit), s.check()); err != nil {
		return nil, false, err
	}
	whole, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	w := walk{s: s, ctx: whole, prefix: prefix, after: after, limit: limit, rest: s.rests.take(prefix, after, s.now())}
	err = w.directory(s.root, "")
	switch {
	case ctx.Err() == nil && whole.Err() != nil:
		return nil, false, fmt.Errorf("list %q: %w: the list has no end", prefix, objects.ErrUnreachable)
	case err != nil:
		return nil, false, tell(err)
	}
	if w.more {
		s.keepRest(&w)
	}
	return w.found, w.more, nil
}

// walk lists a tree in the order of whole names. An entry of a directory stands in two places of that order, as a file and as a
// directory, since '-' and '.' come before '/'. Its kind is looked up when its turn has come.
//
// A directory may have any number of entries. Their names are read in parts, and of these the first places are held, enough for
// the objects that are asked for, or more if there is memory; where that was not enough the directory is read again.
type walk struct {
	s             *Store
	ctx           context.Context
	prefix, after string
	limit         int
	found         []objects.Info
	file          string // the last one of these: it is no directory
	more          bool
	rest          *rest // of the page before, or, at the end, of this one; nil: there is none
}

// directory lists the objects below a directory whose names begin with within, which is empty or ends in '/'.
func (w *walk) directory(dir, within string) error {
	for after, more := "", true; more && !w.more; {
		if err := w.s.own(dir); err != nil {
			return err
		}
		if r := w.rest; r != nil && r.dir == dir {
			w.rest = nil
			if err := w.visit(r); err != nil {
				return err
			}
			after, more = r.last, r.more
			continue
		}
		next, read := places{within: within, from: w.after, after: after, most: w.mostPlaces()}, w.s.now()
		err := files.EachName(w.s.fs, dir, func(entry string) error {
			if next.skips(entry) {
				return w.ctx.Err()
			}
			name := within + entry
			if objects.CheckName(name) != nil {
				return w.ctx.Err() // .tmp, or what others put there
			}
			if strings.HasPrefix(name, w.prefix) && name > w.after {
				next.add(name)
			}
			if below := name + "/"; mayHold(below, w.prefix, w.after) {
				next.add(below)
			}
			return w.ctx.Err()
		})
		if isAbsent(err) {
			return nil // removed meanwhile
		}
		if err != nil {
			return err
		}
		r := rest{dir: dir, read: read}
		r.places, r.more = next.take()
		if err := w.visit(&r); err != nil {
			return err
		}
		after, more = r.last, r.more
	}
	return nil
}

// visit visits the places that are left, in their order, until all objects that are asked for are found.
func (w *walk) visit(r *rest) error {
	for len(r.places) > 0 {
		place := r.places[0]
		below, err := w.place(place)
		if err == nil && w.more { // this one is the first of the next page
			w.rest = r
			return nil
		}
		r.last, r.places = place, r.places[1:]
		if below && len(r.places) > mostAbove {
			r.places, r.more = slices.Clone(r.places[:mostAbove]), true
		}
		if err == nil && below {
			err = w.directory(w.s.path(strings.TrimSuffix(place, "/")), place)
		}
		if err := errors.Join(w.ctx.Err(), err); err != nil || w.more {
			return err
		}
	}
	return nil
}

// mostAbove is how many places of a directory are held while one below it is listed: trees may be deep.
const mostAbove = 8

// mayHold tells whether names that begin with below can be meant by a prefix, and come after a name.
func mayHold(below, prefix, after string) bool {
	if !strings.HasPrefix(below, prefix) && !strings.HasPrefix(prefix, below) {
		return false
	}
	return below > after || strings.HasPrefix(after, below)
}

// place lists one entry as a file, or reports that it is a directory, whose objects are to be listed.
func (w *walk) place(name string) (below bool, err error) {
	path, isDir := strings.CutSuffix(name, "/")
	if isDir && path == w.file {
		return false, nil
	}
	info, err := w.s.fs.Stat(w.s.path(path))
	switch {
	case isAbsent(err) || err == nil && info.IsDir() != isDir:
		return false, nil
	case err != nil: // a link may lead in circles, or to where this process may not look
		return false, errors.Join(w.s.own(w.s.path(path)), err)
	case isDir:
		return true, nil
	case len(w.found) == w.limit:
		w.more = true
		return false, nil
	}
	w.file = name
	w.found = append(w.found, objects.Info{Name: name, Size: info.Size(), Time: info.ModTime()})
	return false, nil
}

// mostPlaces is how many places are held: those of a page, or more if there is memory, for the pages that follow.
func (w *walk) mostPlaces() int {
	return max(2*(w.limit-len(w.found)+1), int(min(w.s.o.ListBytes/placeBytes, 1<<20)))
}

// now is the wall time, zero where there is none: no places are kept then.
func (s *Store) now() time.Time {
	if s.o.Now == nil {
		return time.Time{}
	}
	return s.o.Now()
}

// keepRest keeps the places of a walk that ended before them, for the next page.
func (s *Store) keepRest(w *walk) {
	if w.rest != nil && len(w.found) > 0 && s.o.ListBytes > 0 && !w.rest.read.IsZero() {
		w.rest.prefix, w.rest.after = w.prefix, w.found[len(w.found)-1].Name
		s.rests.keep(w.rest)
	}
}

// Held returns the bytes of names that are kept for a page of a list that may follow.
func (s *Store) Held() int64 { return s.rests.held() }
