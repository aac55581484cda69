package files

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/quorate/quorate/internal/base/env"
)

// Disk is the machine's file system. It opens regular files and directories alone, and follows no link to a file: see
// ErrOtherKind.
var Disk = FromPebble(regular)

// FromPebble returns a file system of Pebble as an env.FS.
func FromPebble(fs vfs.FS) env.FS {
	if p, ok := fs.(*pebbleFS); ok {
		return p.fs
	}
	return &diskFS{fs}
}

// diskFS is a vfs.FS as an env.FS.
type diskFS struct{ fs vfs.FS }

// diskFile is a vfs.File as an env.File.
type diskFile struct{ vfs.File }

func opened(f vfs.File, err error) (env.File, error) {
	if err != nil {
		return nil, err
	}
	if p, ok := f.(*pebbleFile); ok {
		return p.File, nil
	}
	return diskFile{f}, nil
}

// ReadFrom implements io.ReaderFrom: from one file of the disk to another the operating system copies, which may share blocks.
func (f diskFile) ReadFrom(from io.Reader) (int64, error) {
	if file, ok := from.(diskFile); ok {
		from = file.File
	}
	return io.Copy(f.File, from)
}

// Stat implements env.File.
func (f diskFile) Stat() (os.FileInfo, error) { return f.File.Stat() }

// Create implements env.FS.
func (f *diskFS) Create(name string) (env.File, error) {
	return opened(f.fs.Create(name, vfs.WriteCategoryUnspecified))
}

// Open implements env.FS.
func (f *diskFS) Open(name string) (env.File, error) { return opened(f.fs.Open(name)) }

// OpenSequential implements env.FS.
func (f *diskFS) OpenSequential(name string) (env.File, error) {
	return opened(f.fs.Open(name, vfs.SequentialReadsOption))
}

// OpenReadWrite implements env.FS.
func (f *diskFS) OpenReadWrite(name string) (env.File, error) {
	return opened(f.fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified))
}

// OpenDir implements env.FS.
func (f *diskFS) OpenDir(name string) (env.File, error) { return opened(f.fs.OpenDir(name)) }

// Link implements env.FS.
func (f *diskFS) Link(oldname, newname string) error { return f.fs.Link(oldname, newname) }

// Rename implements env.FS.
func (f *diskFS) Rename(oldname, newname string) error { return f.fs.Rename(oldname, newname) }

// Remove implements env.FS.
func (f *diskFS) Remove(name string) error { return f.fs.Remove(name) }

// RemoveAll implements env.FS.
func (f *diskFS) RemoveAll(name string) error { return f.fs.RemoveAll(name) }

// MkdirAll implements env.FS.
func (f *diskFS) MkdirAll(name string, perm os.FileMode) error { return f.fs.MkdirAll(name, perm) }

// Lock implements env.FS.
func (f *diskFS) Lock(name string) (io.Closer, error) { return f.fs.Lock(name) }

// List implements env.FS.
func (f *diskFS) List(name string) ([]string, error) { return f.fs.List(name) }

// Stat implements env.FS.
func (f *diskFS) Stat(name string) (os.FileInfo, error) { return f.fs.Stat(name) }

// DiskUsage implements env.FS.
func (f *diskFS) DiskUsage(name string) (env.DiskUsage, error) {
	usage, err := f.fs.GetDiskUsage(name)
	if errors.Is(err, vfs.ErrUnsupported) {
		err = fmt.Errorf("%w: %w", env.ErrNoDiskUsage, err)
	}
	return env.DiskUsage(usage), err
}

// PathBase implements env.FS.
func (f *diskFS) PathBase(name string) string { return f.fs.PathBase(name) }

// PathDir implements env.FS.
func (f *diskFS) PathDir(name string) string { return f.fs.PathDir(name) }

// PathJoin implements env.FS.
func (f *diskFS) PathJoin(elements ...string) string { return f.fs.PathJoin(elements...) }

// ToPebble returns a file system for Pebble.
func ToPebble(fs env.FS) vfs.FS {
	if d, ok := fs.(*diskFS); ok {
		return d.fs
	}
	return &pebbleFS{fs}
}

// pebbleFS is an env.FS as a vfs.FS. It does no accounting by the category of a write.
type pebbleFS struct{ fs env.FS }

// pebbleFile is an env.File as a vfs.File.
type pebbleFile struct{ env.File }

func forPebble(f env.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	if d, ok := f.(diskFile); ok {
		return d.File, nil
	}
	if s, ok := f.(shifted); ok {
		below, by := s.Under()
		if d, ok := below.(diskFile); ok {
			return &shiftedFile{pebbleFile{f}, d.File, by}, nil
		}
	}
	return &pebbleFile{f}, nil
}

// shifted is a file whose content lies in another one, of the disk or not, behind so many bytes.
type shifted interface {
	Under() (below env.File, by int64)
}

// shiftedFile has what Pebble asks of a file beside its content, from the file of the disk below.
type shiftedFile struct {
	pebbleFile
	below vfs.File
	by    int64
}

// SyncTo implements vfs.File.
func (f *shiftedFile) SyncTo(length int64) (fullSync bool, err error) {
	return f.below.SyncTo(length + f.by)
}

// Prefetch implements vfs.File.
func (f *shiftedFile) Prefetch(offset, length int64) error {
	return f.below.Prefetch(offset+f.by, length)
}

// Fd implements vfs.File: Pebble advises the system by it, and reads nothing through it.
func (f *shiftedFile) Fd() uintptr { return f.below.Fd() }

// forPebbleWith applies the options to a file that has a descriptor, as the file systems of Pebble do.
func forPebbleWith(options []vfs.OpenOption, f env.File, err error) (vfs.File, error) {
	file, err := forPebble(f, err)
	if err != nil {
		return nil, err
	}
	for _, option := range options {
		option.Apply(file)
	}
	return file, nil
}

// Stat implements vfs.File.
func (f *pebbleFile) Stat() (vfs.FileInfo, error) { return infoForPebble(f.File.Stat()) }

// SyncTo implements vfs.File: it promises nothing, as the interface allows.
func (*pebbleFile) SyncTo(int64) (fullSync bool, err error) { return false, nil }

// Prefetch implements vfs.File.
func (*pebbleFile) Prefetch(int64, int64) error { return nil }

// Fd implements vfs.File.
func (*pebbleFile) Fd() uintptr { return vfs.InvalidFd }

// fileInfo is a file of an unknown device.
type fileInfo struct{ os.FileInfo }

// DeviceID implements vfs.FileInfo.
func (fileInfo) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }

func infoForPebble(info os.FileInfo, err error) (vfs.FileInfo, error) {
	if err != nil {
		return nil, err
	}
	if own, ok := info.(vfs.FileInfo); ok {
		return own, nil
	}
	return fileInfo{info}, nil
}

// Create implements vfs.FS.
func (f *pebbleFS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return forPebble(f.fs.Create(name))
}

// Link implements vfs.FS.
func (f *pebbleFS) Link(oldname, newname string) error { return f.fs.Link(oldname, newname) }

// Open implements vfs.FS.
func (f *pebbleFS) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.fs.Open(name)
	return forPebbleWith(options, file, err)
}

// OpenReadWrite implements vfs.FS.
func (f *pebbleFS) OpenReadWrite(name string, _ vfs.DiskWriteCategory, options ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.fs.OpenReadWrite(name)
	return forPebbleWith(options, file, err)
}

// OpenDir implements vfs.FS.
func (f *pebbleFS) OpenDir(name string) (vfs.File, error) { return forPebble(f.fs.OpenDir(name)) }

// Remove implements vfs.FS.
func (f *pebbleFS) Remove(name string) error { return f.fs.Remove(name) }

// RemoveAll implements vfs.FS.
func (f *pebbleFS) RemoveAll(name string) error { return f.fs.RemoveAll(name) }

// Rename implements vfs.FS.
func (f *pebbleFS) Rename(oldname, newname string) error { return f.fs.Rename(oldname, newname) }

// ReuseForWrite implements vfs.FS.
func (f *pebbleFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.fs.Rename(oldname, newname); err != nil {
		return nil, err
	}
	return f.OpenReadWrite(newname, category)
}

// MkdirAll implements vfs.FS.
func (f *pebbleFS) MkdirAll(name string, perm os.FileMode) error { return f.fs.MkdirAll(name, perm) }

// Lock implements vfs.FS.
func (f *pebbleFS) Lock(name string) (io.Closer, error) { return f.fs.Lock(name) }

// List implements vfs.FS.
func (f *pebbleFS) List(name string) ([]string, error) { return f.fs.List(name) }

// Stat implements vfs.FS.
func (f *pebbleFS) Stat(name string) (vfs.FileInfo, error) { return infoForPebble(f.fs.Stat(name)) }

// GetDiskUsage implements vfs.FS.
func (f *pebbleFS) GetDiskUsage(name string) (vfs.DiskUsage, error) {
	usage, err := f.fs.DiskUsage(name)
	if errors.Is(err, env.ErrNoDiskUsage) && !errors.Is(err, vfs.ErrUnsupported) {
		err = fmt.Errorf("%w: %w", vfs.ErrUnsupported, err)
	}
	return vfs.DiskUsage(usage), err
}

// PathBase implements vfs.FS.
func (f *pebbleFS) PathBase(name string) string { return f.fs.PathBase(name) }

// PathJoin implements vfs.FS.
func (f *pebbleFS) PathJoin(elements ...string) string { return f.fs.PathJoin(elements...) }

// PathDir implements vfs.FS.
func (f *pebbleFS) PathDir(name string) string { return f.fs.PathDir(name) }

// Unwrap implements vfs.FS: what is within is no vfs.FS.
func (*pebbleFS) Unwrap() vfs.FS { return nil }
