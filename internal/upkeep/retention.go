package upkeep

import (
	"sync/atomic"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/datadir"
)

// Retention says how much of the log a member keeps in memory and in the WAL.
type Retention struct {
	CatchUpEntries int // entries kept before the applied index, so that a follower that was away needs no snapshot
	CatchUpBytes   int // upper bound of the bytes of those entries
	Slack          int // entries beyond that before the log is compacted at all
	FlushBytes     int // a flush begins when so many log bytes are not durable in the store
}

// DefaultRetention matches etcd's snapshot-count and catch-up entries, bounded in bytes as well.
func DefaultRetention() Retention {
	return Retention{CatchUpEntries: 5_000, CatchUpBytes: 32 << 20, Slack: 5_000, FlushBytes: 128 << 20}
}

// RetainerOptions are what a Retainer keeps, and what it needs of the member.
type RetainerOptions struct {
	Retention  Retention
	Compact    func(to consensus.Index) // the log, once the core agrees
	Background func(f func())           // runs f in a goroutine that the member's Stop waits for
	Fail       func(err error)          // ends the member
}

// Retainer decides when and how far to compact the log, and when to flush the store.
type Retainer struct {
	options   RetainerOptions
	flushing  atomic.Bool
	sizes     []entrySize // applied entries that the log still holds, oldest first
	bytes     int
	since     int // entries applied since the durable index was read
	unflushed int // bytes since the last flush
}

type entrySize struct {
	index consensus.Index
	bytes int
}

// checkEvery is how many entries are applied before the durable index is read again.
const checkEvery = 1024

// NewRetainer returns a Retainer.
func NewRetainer(options RetainerOptions) *Retainer { return &Retainer{options: options} }

// Applied counts a batch that was applied to store. It asks for a compaction or begins a flush, if one is due.
func (r *Retainer) Applied(store *datadir.Generation, batch []consensus.Entry) error {
	target, err := r.applied(batch, store.Machine.DurableApplied)
	if err != nil {
		return err
	}
	if target > 0 {
		r.options.Compact(target)
	}
	if r.flushDue() {
		r.options.Background(func() { r.flush(store) })
	}
	return nil
}

// Replaced notes that a snapshot has taken the place of the store and of the log.
func (r *Retainer) Replaced() { r.sizes, r.bytes = nil, 0 }

func (r *Retainer) flush(store *datadir.Generation) {
	defer r.flushing.Store(false)
	if !store.Acquire() {
		return // replaced meanwhile
	}
	defer store.Release()
	if err := store.Engine.Flush(); err != nil && store.Life().Err() == nil {
		r.options.Fail(err)
	}
}

// applied counts a batch and returns the index up to which the log may be compacted now, or zero.
func (r *Retainer) applied(
	batch []consensus.Entry, durable func() (consensus.Position, error),
) (consensus.Index, error) {
	for i := range batch {
		size := batch[i].SizeBytes()
		r.sizes = append(r.sizes, entrySize{batch[i].Index, size})
		r.bytes += size
		r.unflushed += size
	}
	r.since += len(batch)
	keep := &r.options.Retention
	over := len(r.sizes) > keep.CatchUpEntries+keep.Slack || r.bytes > 2*keep.CatchUpBytes
	if !over || r.since < checkEvery && r.bytes < 2*keep.CatchUpBytes {
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
		if e.index > limit.Index || count <= keep.CatchUpEntries && bytes <= keep.CatchUpBytes {
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
func (r *Retainer) flushDue() bool {
	if r.unflushed < r.options.Retention.FlushBytes && r.bytes < 4*r.options.Retention.CatchUpBytes {
		return false
	}
	if !r.flushing.CompareAndSwap(false, true) {
		return false
	}
	r.unflushed = 0
	return true
}
