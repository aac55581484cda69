package apply

import (
	"sync"

	"github.com/quorate/quorate/internal/kv/mvcc"
)

// measureAfterBytes of applied payload the size is measured again; in between the payload is added to the last
// measurement, which errs on the safe side of the quota. Asking the engine for each proposal would cost more than
// the put.
const measureAfterBytes = 1 << 20

// size estimates how much room the store takes.
type size struct {
	mu       sync.Mutex
	measured int64
	since    int64
	valid    bool
}

func (s *size) grow(bytes int64) {
	s.mu.Lock()
	s.since += bytes
	s.mu.Unlock()
}

func (s *size) estimate(store *mvcc.Store) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.valid || s.since >= measureAfterBytes {
		now := store.Size()
		s.measured, s.since, s.valid = now.DiskBytes+now.UnflushedBytes, 0, true
	}
	return s.measured + s.since
}

// SizeBytes estimates the room that the store takes, on disk and on its way there. It is cheap.
func (m *Machine) SizeBytes() int64 { return m.size.estimate(m.store) }

// MeasureSize makes the next SizeBytes ask the engine: after a compaction or defragmentation.
func (m *Machine) MeasureSize() {
	m.size.mu.Lock()
	m.size.valid = false
	m.size.mu.Unlock()
}
