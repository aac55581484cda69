package disk

import (
	"errors"
	"io"
	"os"
	"slices"
	"time"
)

// file is an open file or directory.
type file struct {
	fs       *FS
	node     *inode
	name     string
	at       int
	writable bool
}

var errReadOnly = errors.New("disk: file is not open for writing")

// Close implements env.File.
func (o *file) Close() error { return nil }

// Read implements env.File.
func (o *file) Read(p []byte) (int, error) {
	n, err := o.ReadAt(p, int64(o.at))
	o.at += n
	if n > 0 {
		err = nil
	}
	return n, err
}

// ReadAt implements env.File.
func (o *file) ReadAt(p []byte, at int64) (int, error) {
	if o.fs.dead {
		return 0, ErrDead
	}
	if at >= int64(len(o.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, o.node.data[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Write implements env.File.
func (o *file) Write(p []byte) (int, error) {
	n, err := o.WriteAt(p, int64(o.at))
	o.at += n
	return n, err
}

// WriteAt implements env.File.
func (o *file) WriteAt(p []byte, at int64) (int, error) {
	if !o.writable {
		return 0, errReadOnly
	}
	if o.fs.fuse == 0 && !o.fs.dead && len(p) > 1 {
		// The power fails during this write: a part of it reaches the queue.
		o.put(p[:len(p)/2], int(at))
	}
	if err := o.fs.change(); err != nil {
		return 0, err
	}
	if o.fs.Full {
		return 0, errNoSpace
	}
	o.put(p, int(at))
	return len(p), nil
}

func (o *file) put(p []byte, at int) {
	o.fs.stats.Writes++
	o.fs.stats.Bytes += uint64(len(p))
	o.node.data = overwrite(o.node.data, at, p)
	o.node.pending = append(o.node.pending, write{at: at, data: slices.Clone(p)})
}

// Preallocate implements env.File. The virtual disk does not need it.
func (o *file) Preallocate(int64, int64) error {
	if o.fs.Full {
		return errNoSpace
	}
	return nil
}

// Stat implements env.File.
func (o *file) Stat() (os.FileInfo, error) { return info{name: o.name, node: o.node}, nil }

// Sync implements env.File.
func (o *file) Sync() error {
	if err := o.fs.change(); err != nil {
		return err
	}
	o.fs.stats.Syncs++
	if o.fs.Lying {
		return nil
	}
	if o.node.names != nil {
		o.fs.syncDir(o.node)
		return nil
	}
	o.node.sync()
	return nil
}

// SyncData implements env.File.
func (o *file) SyncData() error { return o.Sync() }

type info struct {
	name string
	node *inode
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return int64(len(i.node.data)) }
func (i info) IsDir() bool        { return i.node.names != nil }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) Sys() any           { return nil }

func (i info) Mode() os.FileMode {
	if i.IsDir() {
		return os.ModeDir | 0o755
	}
	return 0o644
}
