//go:build unix

package trail

import (
	"errors"
	"os"
	"syscall"
)

// hold keeps other outputs and processes from a file as long as it is open, if its file system knows locks. It returns false if
// one of them has the file.
func hold(f *os.File) bool {
	return !errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
