package directory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Stat implements objects.Store.
func (s *Store) Stat(ctx context.Context, name string) (objects.Info, error) {
	if err := errors.Join(objects.CheckName(name), ctx.Err()); err != nil {
		return objects.Info{}, err
	}
	path := s.path(name)
	if err := s.own(s.fs.PathDir(path)); err != nil {
		return objects.Info{}, err
	}
	info, err := s.fs.Stat(path)
	switch {
	case isAbsent(err) || err == nil && info.IsDir():
		return objects.Info{}, s.absent(name)
	case err != nil:
		return objects.Info{}, tell(err)
	}
	return objects.Info{Name: name, Size: info.Size(), Time: info.ModTime()}, nil
}

// absent says that an object is not there, unless the whole directory is gone.
func (s *Store) absent(name string) error {
	if err := s.check(); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", name, objects.ErrNotFound)
}

// Get implements objects.Store.
func (s *Store) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	info, err := s.Stat(ctx, name)
	if err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, fmt.Errorf("%w: offset %d", objects.ErrName, offset)
	}
	file, err := s.fs.OpenSequential(s.path(name))
	if isAbsent(err) {
		return nil, s.absent(name)
	}
	if err != nil {
		return nil, tell(err)
	}
	left := max(0, info.Size-offset)
	if length >= 0 {
		left = min(left, length)
	}
	return &body{ctx, file, offset, left}, nil
}

// body is a range of a file.
type body struct {
	ctx  context.Context
	file env.File
	at   int64
	left int64
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.file.ReadAt(p[:min(int64(len(p)), b.left)], b.at)
	b.at += int64(n)
	b.left -= int64(n)
	switch {
	case err == nil || n > 0 && errors.Is(err, io.EOF):
		return n, nil
	case errors.Is(err, io.EOF):
		return 0, fmt.Errorf("%w: the file became shorter while it was read", objects.ErrDamaged)
	}
	return n, tell(err)
}

// Close implements io.Closer.
func (b *body) Close() error { return b.file.Close() }

// listTimeout ends a list of a directory that has names without end and no objects.
const listTimeout = 5 * time.Minute

// List implements objects.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (found []objects.Info, more bool, err error) {
	if err := errors.Join(objects.CheckList(prefix, after, limit), s.check()); err != nil {
		return nil, false, err
	}
	whole, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	w := walk{s: s, ctx: whole, prefix: prefix, after: after, limit: limit}
	err = w.directory(s.root, "")
	switch {
	case ctx.Err() == nil && whole.Err() != nil:
		return nil, false, fmt.Errorf("list %q: %w: the list has no end", prefix, objects.ErrUnreachable)
	case err != nil:
		return nil, false, tell(err)
	}
	return w.found, w.more, nil
}

// walk lists a tree in the order of whole names. An entry of a directory stands in two places of that order, as a file and as a
// directory, since '-' and '.' come before '/'. Its kind is looked up when its turn has come.
//
// A directory may have any number of entries. Their names are read in parts, and of these the first places are held, enough for
// the objects that are asked for; where that was not enough the directory is read again.
type walk struct {
	s             *Store
	ctx           context.Context
	prefix, after string
	limit         int
	found         []objects.Info
	more          bool
}

// directory lists the objects below a directory whose names begin with within, which is empty or ends in '/'.
func (w *walk) directory(dir, within string) error {
	for after, more := "", true; more && !w.more; {
		if err := w.s.own(dir); err != nil {
			return err
		}
		next := places{after: after, most: 2 * (w.limit - len(w.found) + 1)}
		err := files.EachName(w.s.fs, dir, func(entry string) error {
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
		if after, more, err = w.visit(next.take()); err != nil {
			return err
		}
	}
	return nil
}

// visit lists places in their order, which are all there are unless more says otherwise. It returns the last one that it came
// to, and whether there are others after it.
func (w *walk) visit(places []string, more bool) (last string, left bool, err error) {
	for len(places) > 0 && !w.more {
		last, places = places[0], places[1:]
		below, err := w.place(last)
		if below && len(places) > mostAbove {
			places, more = slices.Clone(places[:mostAbove]), true
		}
		if err == nil && below {
			err = w.directory(w.s.path(strings.TrimSuffix(last, "/")), last)
		}
		if err := errors.Join(w.ctx.Err(), err); err != nil {
			return "", false, err
		}
	}
	return last, more, nil
}

// mostAbove is how many places of a directory are held while one below it is listed: trees may be deep.
const mostAbove = 8

// places are the first of many that come after one, in order.
type places struct {
	after string
	most  int
	all   []string
	cut   bool // there are more; all that is held comes before them
}

func (p *places) add(place string) {
	if place <= p.after || p.cut && place > p.all[p.most-1] { // so many come before it
		return
	}
	if p.all = append(p.all, place); len(p.all) >= p.most+p.most/2 {
		p.shorten()
	}
}

// shorten leaves out all but the first.
func (p *places) shorten() {
	slices.Sort(p.all)
	if p.all = slices.Compact(p.all); len(p.all) > p.most {
		clear(p.all[p.most:])
		p.all, p.cut = p.all[:p.most], true
	}
}

// take returns the first, which are the caller's alone, and whether there are more.
func (p *places) take() (all []string, more bool) {
	p.shorten()
	all, p.all = p.all, nil
	return all, p.cut
}

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
	info, err := w.s.fs.Stat(w.s.path(path))
	switch {
	case isAbsent(err) || err == nil && info.IsDir() != isDir:
		return false, nil
	case err != nil:
		return false, err
	case isDir:
		return true, nil
	case len(w.found) == w.limit:
		w.more = true
		return false, nil
	}
	w.found = append(w.found, objects.Info{Name: name, Size: info.Size(), Time: info.ModTime()})
	return false, nil
}
