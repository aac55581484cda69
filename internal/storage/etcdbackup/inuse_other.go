//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package etcdbackup

import "os"

// inUse cannot be found out here.
func inUse(*os.File) bool { return false }
