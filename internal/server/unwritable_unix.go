//go:build unix

package server

import (
	"os"

	"golang.org/x/sys/unix"
)

// openLock opens a lock file, and neither waits for the writer of a pipe nor follows a link: the disk may be anybody's.
func openLock(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
}

// lockShared takes the lock of readers. It fails at once if a process has that of writers.
func lockShared(file *os.File) error {
	return unix.FcntlFlock(file.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
}
