package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrOtherKind means that a name that a member gives to a file, or to a directory that it made, is one of something else.
var ErrOtherKind = errors.New("the disk is not that of a member, or was changed")

// kinds are the words for what is no regular file.
var kinds = [...]struct {
	bit  os.FileMode
	word string
}{
	{os.ModeSymlink, "a symbolic link"}, {os.ModeDir, "a directory"}, {os.ModeNamedPipe, "a pipe"}, {os.ModeSocket, "a socket"},
	{os.ModeDevice, "a device"},
}

func otherKind(name string, mode os.FileMode, want string) error {
	return &os.PathError{Op: "open", Path: name, Err: fmt.Errorf("it is %s, and no %s: %w", kindOf(mode), want, ErrOtherKind)}
}

// kindOf is the word for what has a mode.
func kindOf(mode os.FileMode) string {
	for _, kind := range kinds {
		if mode&kind.bit != 0 {
			return kind.word
		}
	}
	return "no file"
}

// CheckRegular returns ErrOtherKind, in an os.PathError, if a name leads to something that is there and is no regular file. It
// follows no link at the end of the name: a link there leads anywhere, and to open a pipe may wait for ever.
func CheckRegular(name string) error {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return otherKind(name, info.Mode(), "regular file")
	}
	return nil // if it is missing or cannot be looked at, those who open it say so
}

// regularFS is the machine's file system, and opens no file that is none. An operator may link directories
// (docs/data-directory.md says which), so it follows links to these.
//
// It looks before it opens. A process that may change the directory between the two can do so after it, too.
type regularFS struct{ vfs.FS }

var regular vfs.FS = regularFS{vfs.Default}

// Open implements vfs.FS.
func (f regularFS) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	if err := CheckRegular(name); err != nil {
		return nil, err
	}
	return f.FS.Open(name, options...)
}

// OpenReadWrite implements vfs.FS.
func (f regularFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, options ...vfs.OpenOption) (vfs.File, error) {
	if err := CheckRegular(name); err != nil {
		return nil, err
	}
	return f.FS.OpenReadWrite(name, category, options...)
}

// ReuseForWrite implements vfs.FS.
func (f regularFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := CheckRegular(oldname); err != nil {
		return nil, err
	}
	return f.FS.ReuseForWrite(oldname, newname, category)
}

// Lock implements vfs.FS.
func (f regularFS) Lock(name string) (io.Closer, error) {
	if err := CheckRegular(name); err != nil {
		return nil, err
	}
	return f.FS.Lock(name)
}

// OpenDir implements vfs.FS.
func (f regularFS) OpenDir(name string) (vfs.File, error) {
	if err := leadsToDirectory(name); err != nil {
		return nil, err
	}
	return f.FS.OpenDir(name)
}

// List implements vfs.FS.
func (f regularFS) List(name string) ([]string, error) {
	if err := leadsToDirectory(name); err != nil {
		return nil, err
	}
	return f.FS.List(name)
}

// Unwrap implements vfs.FS.
func (f regularFS) Unwrap() vfs.FS { return f.FS }

// leadsToDirectory refuses what is there and no directory: to open a pipe may wait for ever.
func leadsToDirectory(name string) error {
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		return &os.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	return nil
}
