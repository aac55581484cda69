package engine

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// storeFS is the file system that Pebble gets. Pebble panics when it cannot sync the directory of the store after it has
// moved a marker, or cannot finish a file of values, also in goroutines of its own, where no caller can recover it. failed is
// called before. It is called for every sync of the directory that fails, also for a table: it is not known what is in the
// directory then.
type storeFS struct {
	vfs.FS
	dir    string
	failed func(error)
	pacers map[vfs.DiskWriteCategory]*pacer // by category; nil unless Options.Paced
}

// Create implements vfs.FS.
func (f *storeFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	if err == nil && isValueFile(name) {
		file = &blobFile{File: file, failed: f.failed}
	}
	if p := f.pacers[category]; p != nil && err == nil {
		return p.file(file), nil
	}
	return file, err
}

// OpenDir implements vfs.FS.
func (f *storeFS) OpenDir(name string) (vfs.File, error) {
	dir, err := f.FS.OpenDir(name)
	if err != nil || filepath.Clean(name) != filepath.Clean(f.dir) {
		return dir, err
	}
	return &storeDir{dir, f.failed}, nil
}

// storeDir is the directory of the store. Checkpoints have others.
type storeDir struct {
	vfs.File
	failed func(error)
}

// Sync implements vfs.File.
func (d *storeDir) Sync() error {
	err := d.File.Sync()
	if err != nil {
		d.failed(fmt.Errorf("sync the directory: %w", err))
	}
	return err
}

// blobFile is a file of values that lie apart. When Pebble 2.1.7 cannot finish one, it panics in a goroutine of its own: it
// aborts it once more (objstorageprovider.fileBufferedWritable). failed is called before. A write that fails earlier is told to
// Pebble as ever.
type blobFile struct {
	vfs.File
	failed func(error)
}

// Write implements vfs.File.
func (b *blobFile) Write(p []byte) (int, error) {
	n, err := b.File.Write(p)
	return n, b.told(err)
}

// Sync implements vfs.File.
func (b *blobFile) Sync() error { return b.told(b.File.Sync()) }

// SyncData implements vfs.File.
func (b *blobFile) SyncData() error { return b.told(b.File.SyncData()) }

// SyncTo implements vfs.File.
func (b *blobFile) SyncTo(length int64) (fullSync bool, err error) {
	fullSync, err = b.File.SyncTo(length)
	return fullSync, b.told(err)
}

// Preallocate implements vfs.File.
func (b *blobFile) Preallocate(offset, length int64) error {
	return b.told(b.File.Preallocate(offset, length))
}

// Close implements vfs.File.
func (b *blobFile) Close() error { return b.told(b.File.Close()) }

// told is an error that Pebble is about to be told.
func (b *blobFile) told(err error) error {
	if err != nil && finishes() {
		b.failed(fmt.Errorf("finish a file of values: %w", err))
	}
	return err
}

// finishes reports whether Pebble is finishing a file. It is asked only after a failure.
func finishes() bool {
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, "fileBufferedWritable).Finish") {
			return true
		}
		if !more {
			return false
		}
	}
}
