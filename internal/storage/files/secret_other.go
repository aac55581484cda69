//go:build !unix

package files

import "io/fs"

// lentToGroup reports whether root owns a file: there is none.
func lentToGroup(fs.FileInfo) bool { return false }
