package reserve

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/base/env"
)

// Watch tells whether a disk has less room than the reserve. The nil Watch never says so.
type Watch struct {
	fs        env.FS
	dirs      []string
	bytes     uint64
	low       atomic.Bool
	available atomic.Uint64 // on the fullest disk, when last looked at

	mu      sync.Mutex
	pending uint64 // what files that have a Claim still need
}

// New watches the disks that dirs lie on; bytes is the reserve, zero or less: none.
func New(fs env.FS, bytes int64, dirs ...string) *Watch {
	return &Watch{fs: fs, dirs: dirs, bytes: uint64(max(bytes, 0))}
}

// Look asks the disks and reports whether the answer of Low has changed. It ends only when an eighth more than the
// reserve is free, so that it does not change with every file. A file system that cannot tell has room.
func (w *Watch) Look() (changed bool, err error) {
	least, err := w.ask()
	if err != nil {
		return false, err
	}
	w.available.Store(least)
	limit := w.bytes
	if w.low.Load() {
		limit += limit / 8
	}
	low := least < limit
	return w.low.Swap(low) != low, nil
}

// ask returns the room on the fullest disk now, all bits set if no file system can tell.
func (w *Watch) ask() (available uint64, err error) {
	available = math.MaxUint64
	for _, dir := range w.dirs {
		usage, err := w.fs.DiskUsage(dir)
		if errors.Is(err, env.ErrNoDiskUsage) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("reserve: ask for the room on the disk of %s: %w", dir, err)
		}
		available = min(available, usage.AvailBytes)
	}
	return available, nil
}

// Low reports whether growing must be refused.
func (w *Watch) Low() bool { return w != nil && w.low.Load() }

// AvailableBytes returns the room on the fullest disk when it was last looked at.
func (w *Watch) AvailableBytes() uint64 { return w.available.Load() }
