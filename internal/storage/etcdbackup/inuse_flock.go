//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package etcdbackup

import (
	"os"
	"syscall"
)

// inUse tells whether another process has a database open for writing: bbolt locks it. The lock taken here lasts until the
// file is closed, so that no etcd starts meanwhile.
func inUse(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == syscall.EWOULDBLOCK
}
