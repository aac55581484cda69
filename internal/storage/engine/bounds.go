package engine

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// tableBounds is how many bytes the first and last keys of all tables have, which Pebble holds in memory as long as a table
// lives. With keys of some hundred KiB, and tables of 2 MiB, that is a large part of the store.
type tableBounds struct {
	mu                   sync.Mutex
	known                bool
	flushes, compactions int64 // when bytes was counted
	bytes                int64
}

// count returns the sum. It lists the tables if there was a flush or an LSM compaction since it did.
func (b *tableBounds) count(db *pebble.DB, m *pebble.Metrics) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known && b.flushes == m.Flush.Count && b.compactions == m.Compact.Count {
		return b.bytes
	}
	levels, err := db.SSTables()
	if err != nil {
		return b.bytes
	}
	b.known, b.flushes, b.compactions, b.bytes = true, m.Flush.Count, m.Compact.Count, 0
	for _, tables := range levels {
		for i := range tables {
			b.bytes += int64(len(tables[i].Smallest.UserKey) + len(tables[i].Largest.UserKey))
		}
	}
	return b.bytes
}
