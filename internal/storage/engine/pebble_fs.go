package engine

import (
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/quorate/quorate/internal/env"
)

// storeFS is the file system that Pebble gets. Pebble panics when it cannot sync the directory of the store after it has
// moved a marker, also in goroutines of its own, where nobody can recover it. failed is called before. It is called for
// every sync of the directory that fails, also for a table: nobody knows what is in the directory then.
type storeFS struct {
	env.FS
	dir    string
	failed func(error)
	pacers map[vfs.DiskWriteCategory]*pacer // by category; nil unless Options.Paced
}

// Create implements vfs.FS.
func (f *storeFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
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
		d.failed(err)
	}
	return err
}
