package disk

import (
	"errors"
	"io"
	"os"
	"path"

	"github.com/quorate/quorate/internal/base/env"
)

// Create implements env.FS.
func (f *FS) Create(name string) (env.File, error) {
	if err := f.change(); err != nil {
		return nil, err
	}
	if f.Full {
		return nil, errNoSpace
	}
	dir, base, err := f.find("create", name)
	if err != nil {
		return nil, err
	}
	if old := dir.names[base]; old != nil && old.names != nil {
		return nil, &os.PathError{Op: "create", Path: name, Err: errors.New("is a directory")}
	}
	n := &inode{}
	f.edit(edit{dir, base, n})
	return &file{fs: f, node: n, name: base, writable: true}, nil
}

// Link implements env.FS.
func (f *FS) Link(oldname, newname string) error {
	if err := f.change(); err != nil {
		return err
	}
	n, err := f.lookup("link", oldname)
	if err != nil {
		return err
	}
	dir, base, err := f.find("link", newname)
	if err != nil {
		return err
	}
	if dir.names[base] != nil {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: os.ErrExist}
	}
	f.edit(edit{dir, base, n})
	return nil
}

// Open implements env.FS.
func (f *FS) Open(name string) (env.File, error) {
	if f.dead {
		return nil, ErrDead
	}
	n, err := f.lookup("open", name)
	if err != nil {
		return nil, err
	}
	return &file{fs: f, node: n, name: path.Base(name)}, nil
}

// OpenSequential implements env.FS.
func (f *FS) OpenSequential(name string) (env.File, error) { return f.Open(name) }

// OpenReadWrite implements env.FS.
func (f *FS) OpenReadWrite(name string) (env.File, error) {
	n, err := f.lookup("open", name)
	if errors.Is(err, os.ErrNotExist) {
		return f.Create(name)
	}
	if err != nil {
		return nil, err
	}
	return &file{fs: f, node: n, name: path.Base(name), writable: true}, nil
}

// OpenDir implements env.FS.
func (f *FS) OpenDir(name string) (env.File, error) { return f.Open(name) }

// Remove implements env.FS.
func (f *FS) Remove(name string) error {
	if err := f.change(); err != nil {
		return err
	}
	n, err := f.lookup("remove", name)
	if err != nil {
		return err
	}
	if len(n.names) > 0 {
		return &os.PathError{Op: "remove", Path: name, Err: errors.New("directory not empty")}
	}
	dir, base, _ := f.find("remove", name)
	f.edit(edit{dir, base, nil})
	return nil
}

// RemoveAll implements env.FS. It is not atomic: it removes one name after another, the deepest first.
func (f *FS) RemoveAll(name string) error {
	n, err := f.lookup("remove", name)
	if err != nil {
		return nil //nolint:nilerr // as os.RemoveAll: what is not there needs no removal
	}
	for _, child := range sortedNames(n.names) {
		if err := f.RemoveAll(path.Join(name, child)); err != nil {
			return err
		}
	}
	return f.Remove(name)
}

// Rename implements env.FS.
func (f *FS) Rename(oldname, newname string) error {
	if err := f.change(); err != nil {
		return err
	}
	n, err := f.lookup("rename", oldname)
	if err != nil {
		return err
	}
	from, oldbase, _ := f.find("rename", oldname)
	to, newbase, err := f.find("rename", newname)
	if err != nil {
		return err
	}
	if there := to.names[newbase]; there != nil && there != n && len(there.names) > 0 {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: errors.New("directory not empty")}
	}
	f.edit(edit{from, oldbase, nil}, edit{to, newbase, n})
	return nil
}

// MkdirAll implements env.FS.
func (f *FS) MkdirAll(name string, _ os.FileMode) error {
	clean := path.Clean("/" + name)
	if clean == "/" {
		return nil
	}
	if err := f.MkdirAll(path.Dir(clean), 0); err != nil {
		return err
	}
	dir, base, err := f.find("mkdir", clean)
	if err != nil {
		return err
	}
	if n := dir.names[base]; n != nil {
		if n.names == nil {
			return &os.PathError{Op: "mkdir", Path: name, Err: errors.New("not a directory")}
		}
		return nil
	}
	if err := f.change(); err != nil {
		return err
	}
	f.edit(edit{dir, base, newDir()})
	return nil
}

type lock struct{}

func (*lock) Close() error { return nil }

// Lock implements env.FS. A virtual disk has one user, so it always succeeds; the lock file is made as others do.
func (f *FS) Lock(name string) (io.Closer, error) {
	if _, err := f.lookup("lock", name); err != nil {
		created, err := f.Create(name)
		if err != nil {
			return nil, err
		}
		if err := created.Close(); err != nil {
			return nil, err
		}
	}
	return &lock{}, nil
}

// List implements env.FS. The names are sorted.
func (f *FS) List(name string) ([]string, error) {
	n, err := f.lookup("list", name)
	if err != nil {
		return nil, err
	}
	if n.names == nil {
		return nil, &os.PathError{Op: "list", Path: name, Err: errors.New("not a directory")}
	}
	return sortedNames(n.names), nil
}

// Stat implements env.FS.
func (f *FS) Stat(name string) (os.FileInfo, error) {
	n, err := f.lookup("stat", name)
	if err != nil {
		return nil, err
	}
	return info{name: path.Base(name), node: n}, nil
}

// PathBase implements env.FS.
func (*FS) PathBase(p string) string { return path.Base(p) }

// PathJoin implements env.FS.
func (*FS) PathJoin(elem ...string) string { return path.Join(elem...) }

// PathDir implements env.FS.
func (*FS) PathDir(p string) string { return path.Dir(p) }

// DiskUsage implements env.FS.
func (f *FS) DiskUsage(string) (env.DiskUsage, error) {
	const total = 1 << 30
	usage := env.DiskUsage{TotalBytes: total, AvailBytes: total / 2, UsedBytes: total / 2}
	if f.Full {
		usage.AvailBytes, usage.UsedBytes = 0, total
	}
	return usage, nil
}
