package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/quorate/quorate/internal/base/env"
)

// createPerm is that of files, less what the process masks.
const createPerm = 0o666

// CheckDirectory returns ErrOtherKind, in an os.PathError, if a name leads to something that is there and is no directory, or
// is a link to one, where fs is the machine's disk. Other disks have no links.
func CheckDirectory(fs env.FS, name string) error {
	if !isMachines(fs) {
		return nil
	}
	if info, err := os.Lstat(name); err == nil && !info.IsDir() {
		return otherKind(name, info.Mode(), "directory")
	}
	return nil
}

// CheckNoLink returns ErrOtherKind, in an os.PathError, if a name that should be a directory is there, and is a link, a pipe or
// a device, where fs is the machine's disk. Other disks have none of these. A regular file is no directory for those who open
// one: they say so.
func CheckNoLink(fs env.FS, name string) error {
	if !isMachines(fs) {
		return nil
	}
	if info, err := os.Lstat(name); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return otherKind(name, info.Mode(), "directory")
	}
	return nil
}

// isMachines reports whether a file system is the machine's disk, or what lies below a directory of it.
func isMachines(fs env.FS) bool {
	disk, ok := fs.(*diskFS)
	_, below := fs.(*belowFS)
	return below || ok && disk.fs == regular
}

// Below returns the file system fs, for names that lie below a directory in which others may change things at any moment. On
// the machine's disk nothing is read, written, made or removed out of the directory, whatever links others put there, and when:
// names are looked up from the directory on (openat), and a link that leads elsewhere is an error. Other disks have no links:
// they are returned as they are.
//
// The directory is opened for each operation: it may be renamed, or unmounted, and another one may take its place. It is not
// made. Names of other places are refused. Files have no space reserved, SyncData is Sync, and there are no locks.
func Below(fs env.FS, dir string) env.FS {
	if !isMachines(fs) {
		return fs
	}
	return &belowFS{FS: fs, dir: filepath.Clean(dir)}
}

// Namer is a file system that reads the names in a directory in parts, so that their number does not matter.
type Namer interface {
	// EachName calls f with each name in a directory, without the directory's own, in any order. It ends with an error of f. Of
	// names that come or go meanwhile f may get any.
	EachName(dir string, f func(name string) error) error
}

// EachName reads the names in a directory as a Namer does, if the file system is one, as that of Below on the machine's disk,
// and by a List if it is none.
func EachName(fs env.FS, dir string, f func(name string) error) error {
	if n, ok := fs.(Namer); ok {
		return n.EachName(dir, f)
	}
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := f(name); err != nil {
			return err
		}
	}
	return nil
}

// belowFS is the machine's disk below a directory.
type belowFS struct {
	env.FS // for names alone
	dir    string
}

// within returns a name as it is below the directory.
func (b *belowFS) within(name string) (string, error) {
	clean := filepath.Clean(name)
	if clean == b.dir {
		return ".", nil
	}
	const separator = string(filepath.Separator)
	if below, ok := strings.CutPrefix(clean, strings.TrimSuffix(b.dir, separator)+separator); ok {
		return below, nil
	}
	return "", &os.PathError{Op: "look up", Path: name, Err: fmt.Errorf("it is not below %s: %w", b.dir, os.ErrPermission)}
}

// do does an operation on a name in the directory.
func (b *belowFS) do(name string, f func(root *os.Root, below string) error) (err error) {
	below, err := b.within(name)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(b.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return f(root, below)
}

// Create implements env.FS.
func (b *belowFS) Create(name string) (file env.File, err error) {
	return file, b.do(name, func(root *os.Root, below string) error {
		if err := root.Remove(below); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		f, err := root.OpenFile(below, os.O_RDWR|os.O_CREATE|os.O_EXCL, createPerm)
		if err == nil {
			file = belowFile{f}
		}
		return err
	})
}

// Open implements env.FS.
func (b *belowFS) Open(name string) (env.File, error) { return b.open(name, os.O_RDONLY) }

// OpenSequential implements env.FS.
func (b *belowFS) OpenSequential(name string) (env.File, error) { return b.open(name, os.O_RDONLY) }

// OpenReadWrite implements env.FS.
func (b *belowFS) OpenReadWrite(name string) (env.File, error) {
	return b.open(name, os.O_RDWR|os.O_CREATE)
}

func (b *belowFS) open(name string, flags int) (file env.File, err error) {
	return file, b.do(name, func(root *os.Root, below string) error {
		if info, err := root.Lstat(below); err == nil && !info.Mode().IsRegular() {
			return otherKind(name, info.Mode(), "regular file")
		}
		f, err := root.OpenFile(below, flags, createPerm)
		if err == nil {
			file = belowFile{f}
		}
		return err
	})
}

// OpenDir implements env.FS.
func (b *belowFS) OpenDir(name string) (file env.File, err error) {
	return file, b.do(name, func(root *os.Root, below string) error {
		f, err := openDirectory(root, below)
		if err == nil {
			file = belowFile{f}
		}
		return err
	})
}

// openDirectory refuses what is there and no directory: to open a pipe may wait for ever.
func openDirectory(root *os.Root, below string) (*os.File, error) {
	if info, err := root.Stat(below); err == nil && !info.IsDir() {
		return nil, &os.PathError{Op: "open", Path: below, Err: syscall.ENOTDIR}
	}
	return root.Open(below)
}

// List implements env.FS.
func (b *belowFS) List(name string) (names []string, err error) {
	return names, b.do(name, func(root *os.Root, below string) error {
		dir, err := openDirectory(root, below)
		if err != nil {
			return err
		}
		names, err = dir.Readdirnames(-1)
		return errors.Join(err, dir.Close())
	})
}

// partNames is how many names of a directory are read at once.
const partNames = 256

// EachName implements Namer.
func (b *belowFS) EachName(name string, f func(name string) error) error {
	return b.do(name, func(root *os.Root, below string) (err error) {
		dir, err := openDirectory(root, below)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, dir.Close()) }()
		for {
			names, err := dir.Readdirnames(partNames)
			for _, name := range names {
				if err := f(name); err != nil {
					return err
				}
			}
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
		}
	})
}

// Stat implements env.FS. Of a link that leads out of the directory it describes the other end: its kind, size and time.
func (b *belowFS) Stat(name string) (info os.FileInfo, err error) {
	return info, b.do(name, func(root *os.Root, below string) error {
		if info, err = root.Stat(below); err == nil {
			return nil
		}
		if link, linkErr := root.Lstat(below); linkErr == nil && link.Mode()&os.ModeSymlink != 0 {
			info, err = os.Stat(name)
		}
		return err
	})
}

// Link implements env.FS.
func (b *belowFS) Link(oldname, newname string) error {
	return b.both(oldname, newname, (*os.Root).Link)
}

// Rename implements env.FS.
func (b *belowFS) Rename(oldname, newname string) error {
	return b.both(oldname, newname, (*os.Root).Rename)
}

func (b *belowFS) both(oldname, newname string, f func(root *os.Root, oldname, newname string) error) error {
	from, err := b.within(oldname)
	if err != nil {
		return err
	}
	return b.do(newname, func(root *os.Root, to string) error { return f(root, from, to) })
}

// Remove implements env.FS.
func (b *belowFS) Remove(name string) error { return b.do(name, (*os.Root).Remove) }

// RemoveAll implements env.FS.
func (b *belowFS) RemoveAll(name string) error { return b.do(name, (*os.Root).RemoveAll) }

// MkdirAll implements env.FS.
func (b *belowFS) MkdirAll(name string, perm os.FileMode) error {
	return b.do(name, func(root *os.Root, below string) error { return root.MkdirAll(below, perm) })
}

// Lock implements env.FS: nobody needs locks there, and they would be taken by name.
func (b *belowFS) Lock(name string) (io.Closer, error) {
	return nil, &os.PathError{Op: "lock", Path: name, Err: errors.ErrUnsupported}
}

// belowFile is a file of the operating system as an env.File.
type belowFile struct{ *os.File }

// Preallocate implements env.File.
func (belowFile) Preallocate(_, _ int64) error { return syscall.EOPNOTSUPP }

// SyncData implements env.File.
func (f belowFile) SyncData() error { return f.Sync() }
