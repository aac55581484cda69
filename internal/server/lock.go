package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/files"
)

const lockName = "LOCK"

// dirLock keeps a second process out of a data directory.
type dirLock struct{ closer io.Closer }

func (l *dirLock) release() error { return l.closer.Close() }

// lockData creates and locks the data directory, before anything in it is read but what checkData reads.
func (s *Server) lockData(context.Context, Options) error {
	dir := s.cfg.Storage.DataDir
	if err := s.disk.below.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("--data-dir %s: cannot be created: %w", dir, bare(err))
	}
	lock, err := takeLock(s.disk.below, dir)
	s.lock = lock
	return err
}

// takeLock locks a data directory that exists.
func takeLock(fs env.FS, dir string) (*dirLock, error) {
	closer, err := fs.Lock(filepath.Join(dir, lockName))
	switch {
	case err == nil:
		return &dirLock{closer}, nil
	case errors.Is(err, files.ErrOtherKind):
		return nil, fmt.Errorf("--data-dir %s: %s cannot be locked: %w", dir, lockName, bare(err))
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("--data-dir %s: not writable for this user: %w", dir, bare(err))
	case !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("--data-dir %s: cannot be locked: %w", dir, bare(err))
	}
	return nil, fmt.Errorf("--data-dir %s is in use by another process, mostly this member itself: stop it, or leave it "+
		"running. With another directory this member would not have its data", dir)
}

// bare strips the operation and path that the message has already.
func bare(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
