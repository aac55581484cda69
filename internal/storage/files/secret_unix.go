//go:build unix

package files

import (
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// lentToGroup reports whether root owns a file, and this process reads it as one of a group. Root's own group is none.
func lentToGroup(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid != 0 || stat.Gid == 0 {
		return false
	}
	groups, err := os.Getgroups()
	return err == nil && slices.Contains(append(groups, os.Getegid()), int(stat.Gid))
}
