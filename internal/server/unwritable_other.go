//go:build !unix

package server

import (
	"errors"
	"os"
)

// lockShared would take the lock of readers.
func lockShared(*os.File) error { return errors.ErrUnsupported }
