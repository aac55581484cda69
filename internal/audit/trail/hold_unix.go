//go:build unix

package trail

import (
	"errors"
	"os"
	"syscall"
)

// hold keeps other outputs and processes from a file as long as it is open. Where the file system knows no locks it does nothing.
func hold(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return errHeld
	}
	return nil
}
