//go:build unix

package server

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockShared takes the lock of readers. It fails at once if a process has that of writers.
func lockShared(file *os.File) error {
	return unix.FcntlFlock(file.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
}
