package stores

import (
	"io"
	"os"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/sim/disk"
)

// sharedFS is a simulated disk for Pebble's goroutines: each call waits for the machine's turn.
type sharedFS struct {
	*disk.FS
	turn  turn
	lying bool // syncs do nothing
}

func (f *sharedFS) file(opened env.File, err error) (env.File, error) {
	if err != nil {
		return nil, err
	}
	return &sharedFile{File: opened, fs: f}, nil
}

// Create implements env.FS.
func (f *sharedFS) Create(name string) (env.File, error) {
	defer f.turn.take()()
	return f.file(f.FS.Create(name))
}

// Link implements env.FS.
func (f *sharedFS) Link(oldname, newname string) error {
	defer f.turn.take()()
	return f.FS.Link(oldname, newname)
}

// Open implements env.FS.
func (f *sharedFS) Open(name string) (env.File, error) {
	defer f.turn.take()()
	return f.file(f.FS.Open(name))
}

// OpenSequential implements env.FS.
func (f *sharedFS) OpenSequential(name string) (env.File, error) { return f.Open(name) }

// OpenReadWrite implements env.FS.
func (f *sharedFS) OpenReadWrite(name string) (env.File, error) {
	defer f.turn.take()()
	return f.file(f.FS.OpenReadWrite(name))
}

// OpenDir implements env.FS.
func (f *sharedFS) OpenDir(name string) (env.File, error) {
	defer f.turn.take()()
	return f.file(f.FS.OpenDir(name))
}

// Remove implements env.FS.
func (f *sharedFS) Remove(name string) error {
	defer f.turn.take()()
	return f.FS.Remove(name)
}

// RemoveAll implements env.FS.
func (f *sharedFS) RemoveAll(name string) error {
	defer f.turn.take()()
	return f.FS.RemoveAll(name)
}

// Rename implements env.FS.
func (f *sharedFS) Rename(oldname, newname string) error {
	defer f.turn.take()()
	return f.FS.Rename(oldname, newname)
}

// MkdirAll implements env.FS.
func (f *sharedFS) MkdirAll(name string, mode os.FileMode) error {
	defer f.turn.take()()
	return f.FS.MkdirAll(name, mode)
}

// Lock implements env.FS.
func (f *sharedFS) Lock(name string) (io.Closer, error) {
	defer f.turn.take()()
	return f.FS.Lock(name)
}

// List implements env.FS.
func (f *sharedFS) List(name string) ([]string, error) {
	defer f.turn.take()()
	return f.FS.List(name)
}

// Stat implements env.FS. It copies the size now, because other goroutines may write.
func (f *sharedFS) Stat(name string) (os.FileInfo, error) {
	defer f.turn.take()()
	return sized(f.FS.Stat(name))
}

// DiskUsage implements env.FS.
func (f *sharedFS) DiskUsage(name string) (env.DiskUsage, error) {
	defer f.turn.take()()
	return f.FS.DiskUsage(name)
}

// sharedFile is an open file of a sharedFS.
type sharedFile struct {
	env.File
	fs *sharedFS
}

// Read implements env.File.
func (o *sharedFile) Read(p []byte) (int, error) {
	defer o.fs.turn.take()()
	return o.File.Read(p)
}

// ReadAt implements env.File.
func (o *sharedFile) ReadAt(p []byte, at int64) (int, error) {
	defer o.fs.turn.take()()
	return o.File.ReadAt(p, at)
}

// Write implements env.File.
func (o *sharedFile) Write(p []byte) (int, error) {
	defer o.fs.turn.take()()
	return o.File.Write(p)
}

// WriteAt implements env.File.
func (o *sharedFile) WriteAt(p []byte, at int64) (int, error) {
	defer o.fs.turn.take()()
	return o.File.WriteAt(p, at)
}

// Preallocate implements env.File.
func (o *sharedFile) Preallocate(at, length int64) error {
	defer o.fs.turn.take()()
	return o.File.Preallocate(at, length)
}

// Stat implements env.File.
func (o *sharedFile) Stat() (os.FileInfo, error) {
	defer o.fs.turn.take()()
	return sized(o.File.Stat())
}

// Sync implements env.File.
func (o *sharedFile) Sync() error {
	defer o.fs.turn.take()()
	if o.fs.lying {
		return nil
	}
	return o.File.Sync()
}

// SyncData implements env.File.
func (o *sharedFile) SyncData() error { return o.Sync() }

// info is the state of a file at the time of a Stat.
type info struct {
	os.FileInfo
	size int64
}

func (i info) Size() int64 { return i.size }

func sized(of os.FileInfo, err error) (os.FileInfo, error) {
	if err != nil {
		return nil, err
	}
	return info{of, of.Size()}, nil
}
