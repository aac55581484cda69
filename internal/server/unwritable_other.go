//go:build !unix

package server

import (
	"errors"
	"os"
)

// openLock would open a lock file.
func openLock(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// lockShared would take the lock of readers.
func lockShared(*os.File) error { return errors.ErrUnsupported }
