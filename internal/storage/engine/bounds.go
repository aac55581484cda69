package engine

import (
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// tableBounds is how many bytes the first and last keys of all tables have, which Pebble holds in memory as long as a table
// lives. With keys of some hundred KiB, and tables of 2 MiB, that is a large part of the store.
type tableBounds struct {
	stale atomic.Bool // tables came or went since bytes was counted
	bytes atomic.Int64
	mu    sync.Mutex // held while counting
}

// change is told after each flush and each LSM compaction, with Pebble's locks held, and once the store is open.
func (b *tableBounds) change() { b.stale.Store(true) }

// count returns the sum. It lists the tables only if some came or went: each put of a long key asks.
func (b *tableBounds) count(db *pebble.DB) int64 {
	if !b.stale.Load() {
		return b.bytes.Load()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stale.CompareAndSwap(true, false) {
		return b.bytes.Load()
	}
	levels, err := db.SSTables()
	if err != nil {
		b.change()
		return b.bytes.Load()
	}
	var sum int64
	for _, tables := range levels {
		for i := range tables {
			sum += int64(len(tables[i].Smallest.UserKey) + len(tables[i].Largest.UserKey))
		}
	}
	b.bytes.Store(sum)
	return sum
}
