//go:build unix

package server

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// refuseOtherUser keeps another user than the owner from writing to a data directory: the files that it makes would stop
// the member at its next start.
func refuseOtherUser(dir string, stat fs.FileInfo) error {
	owner, ok := stat.Sys().(*syscall.Stat_t)
	if self := os.Geteuid(); ok && int(owner.Uid) != self {
		return fmt.Errorf("--data-dir %s belongs to user %d, and you are user %d: run this as its owner (sudo -u '#%d' …), "+
			"or the member could not open its files any more", dir, owner.Uid, self, owner.Uid)
	}
	return nil
}
