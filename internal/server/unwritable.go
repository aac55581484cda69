package server

import (
	"errors"
	"io"
	"os"

	"github.com/quorate/quorate/internal/base/env"
)

// unwritableFS is a disk that is mounted read-only, as a kernel does with one that fails. Nobody can take the exclusive lock
// there: a shared one is taken, which a process that has the exclusive one by another mount refuses.
type unwritableFS struct{ env.FS }

// Lock implements env.FS.
func (unwritableFS) Lock(name string) (io.Closer, error) {
	file, err := openLock(name)
	if errors.Is(err, os.ErrNotExist) {
		return io.NopCloser(nil), nil // and none can be made
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file: the disk is not that of a member, or was changed")
	}
	if err == nil {
		err = lockShared(file)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
