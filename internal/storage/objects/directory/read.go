package directory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/env"
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

// List implements objects.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (found []objects.Info, more bool, err error) {
	if err := errors.Join(objects.CheckList(prefix, after, limit), s.check()); err != nil {
		return nil, false, err
	}
	w := walk{s: s, ctx: ctx, prefix: prefix, after: after, limit: limit}
	if err := w.directory(s.root, ""); err != nil {
		return nil, false, tell(err)
	}
	return w.found, w.more, nil
}

// walk lists a tree in the order of whole names. An entry of a directory stands in two places of that order, as a file and as a
// directory, since '-' and '.' come before '/'. Its kind is looked up when its turn has come.
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
	if err := w.s.own(dir); err != nil {
		return err
	}
	entries, err := w.s.fs.List(dir)
	if isAbsent(err) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	var places []string
	for _, entry := range entries {
		name := within + entry
		if objects.CheckName(name) != nil {
			continue // .tmp, or what others put there
		}
		if strings.HasPrefix(name, w.prefix) && name > w.after {
			places = append(places, name)
		}
		if below := name + "/"; mayHold(below, w.prefix, w.after) {
			places = append(places, below)
		}
	}
	slices.Sort(places)
	for _, place := range places {
		if w.more {
			return nil
		}
		if err := errors.Join(w.ctx.Err(), w.place(place)); err != nil {
			return err
		}
	}
	return nil
}

// mayHold tells whether names that begin with below can be meant by a prefix, and come after a name.
func mayHold(below, prefix, after string) bool {
	if !strings.HasPrefix(below, prefix) && !strings.HasPrefix(prefix, below) {
		return false
	}
	return below > after || strings.HasPrefix(after, below)
}

// place lists one entry, as a file or as a directory.
func (w *walk) place(name string) error {
	path, isDir := strings.CutSuffix(name, "/")
	info, err := w.s.fs.Stat(w.s.path(path))
	switch {
	case isAbsent(err) || err == nil && info.IsDir() != isDir:
		return nil
	case err != nil:
		return err
	case isDir:
		return w.directory(w.s.path(path), name)
	case len(w.found) == w.limit:
		w.more = true
		return nil
	}
	w.found = append(w.found, objects.Info{Name: name, Size: info.Size(), Time: info.ModTime()})
	return nil
}
