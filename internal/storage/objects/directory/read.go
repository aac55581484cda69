package directory

import (
	"context"
	"errors"
	"fmt"
	"io"

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
	switch {
	case isAbsent(err):
		return nil, s.absent(name)
	case errors.Is(err, files.ErrOtherKind):
		return nil, fmt.Errorf("%w: %w", objects.ErrForeign, err)
	case err != nil:
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
