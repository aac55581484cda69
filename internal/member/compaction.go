package member

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Retention says how much of the log a member keeps in memory and in the WAL.
type Retention struct {
	CatchUpEntries int // kept behind the applied index, so that a follower that was away needs no snapshot
	CatchUpBytes   int // but no more than this
	Slack          int // entries beyond that before the log is compacted at all
	FlushBytes     int // log bytes that the store lacks durably before it is flushed out of turn
}

// DefaultRetention matches etcd's snapshot-count and catch-up entries, bounded in bytes as well.
func DefaultRetention() Retention {
	return Retention{CatchUpEntries: 5_000, CatchUpBytes: 32 << 20, Slack: 5_000, FlushBytes: 128 << 20}
}

// retainer decides when and how far to compact. It belongs to the goroutine that applies.
//
// The log must keep what the store does not hold durably: the store writes no log of its own (architecture.md), so
// after a crash its end is replayed from the WAL.
type retainer struct {
	retention Retention
	flushing  atomic.Bool
	sizes     []entrySize // applied entries that the log still holds, oldest first
	bytes     int
	since     int // entries applied since the durable index was asked for
	unflushed int // bytes since the last flush
}

type entrySize struct {
	index consensus.Index
	bytes int
}

// checkEvery is how many applied entries pass between two looks at the durable index.
const checkEvery = 1024

// applied counts a batch and returns the index up to which the log may be compacted now, or zero.
func (r *retainer) applied(
	batch []consensus.Entry, durable func() (consensus.Mark, error),
) (consensus.Index, error) {
	for i := range batch {
		size := batch[i].SizeBytes()
		r.sizes = append(r.sizes, entrySize{batch[i].Index, size})
		r.bytes += size
		r.unflushed += size
	}
	r.since += len(batch)
	over := len(r.sizes) > r.retention.CatchUpEntries+r.retention.Slack || r.bytes > 2*r.retention.CatchUpBytes
	if !over || r.since < checkEvery && r.bytes < 2*r.retention.CatchUpBytes {
		return 0, nil
	}
	r.since = 0
	limit, err := durable()
	if err != nil {
		return 0, err
	}
	var target consensus.Index
	drop := 0
	count, bytes := len(r.sizes), r.bytes
	for _, e := range r.sizes {
		if e.index > limit.Index || count <= r.retention.CatchUpEntries && bytes <= r.retention.CatchUpBytes {
			break
		}
		target = e.index
		bytes -= e.bytes
		count--
		drop++
	}
	r.sizes = append(r.sizes[:0], r.sizes[drop:]...)
	r.bytes = bytes
	return target, nil
}

// flushDue reports whether so much is not durable in the store that it should be flushed.
func (r *retainer) flushDue() bool {
	if r.unflushed < r.retention.FlushBytes && r.bytes < 4*r.retention.CatchUpBytes {
		return false
	}
	if !r.flushing.CompareAndSwap(false, true) {
		return false
	}
	r.unflushed = 0
	return true
}

// retain compacts the log behind what was applied.
func (m *Member) retain(batch []consensus.Entry) error {
	store := m.data.Generation
	target, err := m.retainer.applied(batch, store.Machine.DurableApplied)
	if err != nil {
		return err
	}
	if target > 0 {
		m.inbox.put(raft.Compact{Index: target})
	}
	if m.retainer.flushDue() {
		m.background(func() { m.flush(store) })
	}
	return nil
}

func (m *Member) flush(store *datadir.Generation) {
	defer m.retainer.flushing.Store(false)
	if !store.Hold() {
		return // replaced meanwhile
	}
	defer store.Release()
	if err := store.Engine.Flush(); err != nil && store.Life().Err() == nil {
		m.fail(err)
	}
}

// background runs f in a goroutine that Stop waits for.
func (m *Member) background(f func()) {
	m.wg.Add(1)
	go func() {
		defer m.wg.Done()
		f()
	}()
}

// Defragment rewrites the store's tables so that the space of deleted keys is free. Reads and writes go on meanwhile; it
// ends early when the member stops or a snapshot replaces the store.
func (m *Member) Defragment(ctx context.Context) error {
	store, held := m.stores.Hold()
	if !held {
		return ErrStopped
	}
	defer store.Release()
	ctx, cancel := store.Within(ctx)
	defer cancel()
	if err := store.Engine.Defragment(ctx); err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return nil
}

// StorageStats returns what log and store have counted.
func (m *Member) StorageStats() (wal.Stats, engine.Stats) {
	store, held := m.stores.Hold()
	if !held {
		return m.data.WAL.Stats(), engine.Stats{}
	}
	defer store.Release()
	return m.data.WAL.Stats(), store.Engine.Stats()
}
