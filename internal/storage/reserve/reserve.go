package reserve

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/quorate/quorate/internal/env"
)

// Watch tells whether a disk has less room than the reserve. The nil Watch never says so.
type Watch struct {
	fs        env.FS
	dirs      []string
	bytes     uint64
	low       atomic.Bool
	available atomic.Uint64 // on the fullest disk, when last looked at
}

// New watches the disks that dirs lie on; bytes is the reserve, zero or less: none.
func New(fs env.FS, bytes int64, dirs ...string) *Watch {
	return &Watch{fs: fs, dirs: dirs, bytes: uint64(max(bytes, 0))}
}

// Look asks the disks and reports whether the answer of Low has changed. It ends only when an eighth more than the
// reserve is free, so that it does not change with every file. A file system that cannot tell has room.
func (w *Watch) Look() (changed bool, err error) {
	least := ^uint64(0)
	for _, dir := range w.dirs {
		usage, err := w.fs.GetDiskUsage(dir)
		if errors.Is(err, vfs.ErrUnsupported) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("reserve: ask for the room on the disk of %s: %w", dir, err)
		}
		least = min(least, usage.AvailBytes)
	}
	w.available.Store(least)
	limit := w.bytes
	if w.low.Load() {
		limit += limit / 8
	}
	low := least < limit
	return w.low.Swap(low) != low, nil
}

// Low reports whether growing must be refused.
func (w *Watch) Low() bool { return w != nil && w.low.Load() }

// AvailableBytes returns the room on the fullest disk when it was last looked at.
func (w *Watch) AvailableBytes() uint64 { return w.available.Load() }
