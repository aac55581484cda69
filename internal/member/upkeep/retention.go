package upkeep

import (
	"sync/atomic"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
)

// Retention says how much of the log a member keeps in memory and in the WAL.
type Retention struct {
	CatchUpEntries int // entries kept before the applied index, so that a follower that was away needs no snapshot
	CatchUpBytes   int // upper bound of the bytes of those entries
	Slack          int // entries beyond that before the log is compacted at all
	FlushBytes     int // a flush begins when so many bytes of the log are not durable in the store
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
	options    RetainerOptions
	flushing   atomic.Bool
	sizes      []entrySize // applied entries that the log still holds, oldest first
	bytes      int
	since      int // entries applied since the durable index was last read
	sinceBytes int // their bytes
	unflushed  int // bytes of entries that were not durable when it was read, or were applied since
}

type entrySize struct {
	index consensus.Index
	bytes int
}

// The durable index is read again after checkEvery entries, or 1/checkPart of CatchUpBytes.
const (
	checkEvery = 1024
	checkPart  = 8
)

// NewRetainer returns a Retainer.
func NewRetainer(options RetainerOptions) *Retainer { return &Retainer{options: options} }

// Applied counts a batch that was applied to store. It asks for a compaction or begins a flush, if one is due.
func (r *Retainer) Applied(store *datadir.Generation, batch []consensus.Entry) error {
	target, flush, err := r.applied(batch, store.Machine.DurableApplied)
	if err != nil {
		return err
	}
	if target > 0 {
		r.options.Compact(target)
	}
	if flush && r.flushing.CompareAndSwap(false, true) {
		r.options.Background(func() { r.flush(store) })
	}
	return nil
}

// Replaced notes that a snapshot has taken the place of the store and of the log.
func (r *Retainer) Replaced() {
	r.sizes, r.bytes, r.since, r.sinceBytes, r.unflushed = nil, 0, 0, 0, 0
}

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

// applied counts a batch. It returns the index up to which the log may be compacted now, or zero, and whether the store should
// be flushed. A store also flushes by itself, which shows in what is durable.
func (r *Retainer) applied(
	batch []consensus.Entry, durable func() (consensus.Position, error),
) (target consensus.Index, flush bool, err error) {
	for i := range batch {
		size := batch[i].SizeBytes()
		r.sizes = append(r.sizes, entrySize{batch[i].Index, size})
		r.bytes += size
		r.unflushed += size
		r.sinceBytes += size
	}
	r.since += len(batch)
	keep := &r.options.Retention
	over := len(r.sizes) > keep.CatchUpEntries+keep.Slack || r.bytes > 2*keep.CatchUpBytes
	over = over && (r.since >= checkEvery || r.sinceBytes >= keep.CatchUpBytes/checkPart)
	flush = r.unflushed >= keep.FlushBytes && !r.flushing.Load()
	if !over && !flush {
		return 0, false, nil
	}
	limit, err := durable()
	if err != nil {
		return 0, false, err
	}
	r.since, r.sinceBytes, r.unflushed = 0, 0, r.beyond(limit.Index)
	if over {
		target = r.cut(limit.Index)
	}
	return target, flush && r.unflushed >= keep.FlushBytes, nil
}

// beyond returns the bytes of entries after an index.
func (r *Retainer) beyond(durable consensus.Index) (bytes int) {
	for i := len(r.sizes) - 1; i >= 0 && r.sizes[i].index > durable; i-- {
		bytes += r.sizes[i].bytes
	}
	return bytes
}

// cut forgets durable entries beyond those that are kept for others to catch up, and returns the last of them, or zero.
func (r *Retainer) cut(durable consensus.Index) (target consensus.Index) {
	keep := &r.options.Retention
	drop := 0
	count, bytes := len(r.sizes), r.bytes
	for _, e := range r.sizes {
		if e.index > durable || count <= keep.CatchUpEntries && bytes <= keep.CatchUpBytes {
			break
		}
		target = e.index
		bytes -= e.bytes
		count--
		drop++
	}
	r.sizes = append(r.sizes[:0], r.sizes[drop:]...)
	r.bytes = bytes
	return target
}
