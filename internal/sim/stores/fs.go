package stores

import (
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/quorate/quorate/internal/sim/disk"
)

// sharedFS is a simulated disk for Pebble's goroutines: each call waits for the machine's turn.
type sharedFS struct {
	*disk.FS
	turn  turn
	lying bool // syncs do nothing
}

func (f *sharedFS) file(opened vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &sharedFile{File: opened, fs: f}, nil
}

// Create implements vfs.FS.
func (f *sharedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	defer f.turn.take()()
	return f.file(f.FS.Create(name, category))
}

// Link implements vfs.FS.
func (f *sharedFS) Link(oldname, newname string) error {
	defer f.turn.take()()
	return f.FS.Link(oldname, newname)
}

// Open implements vfs.FS.
func (f *sharedFS) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	defer f.turn.take()()
	return f.file(f.FS.Open(name, options...))
}

// OpenReadWrite implements vfs.FS.
func (f *sharedFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	defer f.turn.take()()
	return f.file(f.FS.OpenReadWrite(name, category, o...))
}

// OpenDir implements vfs.FS.
func (f *sharedFS) OpenDir(name string) (vfs.File, error) {
	defer f.turn.take()()
	return f.file(f.FS.OpenDir(name))
}

// Remove implements vfs.FS.
func (f *sharedFS) Remove(name string) error {
	defer f.turn.take()()
	return f.FS.Remove(name)
}

// RemoveAll implements vfs.FS.
func (f *sharedFS) RemoveAll(name string) error {
	defer f.turn.take()()
	return f.FS.RemoveAll(name)
}

// Rename implements vfs.FS.
func (f *sharedFS) Rename(oldname, newname string) error {
	defer f.turn.take()()
	return f.FS.Rename(oldname, newname)
}

// ReuseForWrite implements vfs.FS.
func (f *sharedFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	defer f.turn.take()()
	return f.file(f.FS.ReuseForWrite(oldname, newname, category))
}

// MkdirAll implements vfs.FS.
func (f *sharedFS) MkdirAll(name string, mode os.FileMode) error {
	defer f.turn.take()()
	return f.FS.MkdirAll(name, mode)
}

// Lock implements vfs.FS.
func (f *sharedFS) Lock(name string) (io.Closer, error) {
	defer f.turn.take()()
	return f.FS.Lock(name)
}

// List implements vfs.FS.
func (f *sharedFS) List(name string) ([]string, error) {
	defer f.turn.take()()
	return f.FS.List(name)
}

// Stat implements vfs.FS. It copies the size now, because other goroutines may write.
func (f *sharedFS) Stat(name string) (vfs.FileInfo, error) {
	defer f.turn.take()()
	return sized(f.FS.Stat(name))
}

// GetDiskUsage implements vfs.FS.
func (f *sharedFS) GetDiskUsage(name string) (vfs.DiskUsage, error) {
	defer f.turn.take()()
	return f.FS.GetDiskUsage(name)
}

// sharedFile is an open file of a sharedFS.
type sharedFile struct {
	vfs.File
	fs *sharedFS
}

// Read implements vfs.File.
func (o *sharedFile) Read(p []byte) (int, error) {
	defer o.fs.turn.take()()
	return o.File.Read(p)
}

// ReadAt implements vfs.File.
func (o *sharedFile) ReadAt(p []byte, at int64) (int, error) {
	defer o.fs.turn.take()()
	return o.File.ReadAt(p, at)
}

// Write implements vfs.File.
func (o *sharedFile) Write(p []byte) (int, error) {
	defer o.fs.turn.take()()
	return o.File.Write(p)
}

// WriteAt implements vfs.File.
func (o *sharedFile) WriteAt(p []byte, at int64) (int, error) {
	defer o.fs.turn.take()()
	return o.File.WriteAt(p, at)
}

// Preallocate implements vfs.File.
func (o *sharedFile) Preallocate(at, length int64) error {
	defer o.fs.turn.take()()
	return o.File.Preallocate(at, length)
}

// Stat implements vfs.File.
func (o *sharedFile) Stat() (vfs.FileInfo, error) {
	defer o.fs.turn.take()()
	return sized(o.File.Stat())
}

// Sync implements vfs.File.
func (o *sharedFile) Sync() error {
	defer o.fs.turn.take()()
	if o.fs.lying {
		return nil
	}
	return o.File.Sync()
}

// SyncData implements vfs.File.
func (o *sharedFile) SyncData() error { return o.Sync() }

// info is the state of a file at the time of a Stat.
type info struct {
	vfs.FileInfo
	size int64
}

func (i info) Size() int64 { return i.size }

func sized(of vfs.FileInfo, err error) (vfs.FileInfo, error) {
	if err != nil {
		return nil, err
	}
	return info{of, of.Size()}, nil
}
