package expiry

import (
	"sync"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
)

const (
	// maxBatches is how many batches may be asked for at once: while one is on its way, the next is answered.
	maxBatches = 2
	// MaxBatchLeases is how many leases one batch may have.
	MaxBatchLeases = 4096
)

// Batches puts the renewals that come while others are being asked for into one question: one confirmation by a quorum, and
// between members one call, is for all of a batch.
//
// A renewal joins before its batch is asked for, so the leader confirms that it leads after each of its renewals came.
type Batches struct {
	mu    sync.Mutex
	asked int      // batches on their way
	queue []*Batch // that wait; all but the last are full
}

// Batch is the leases of several callers.
type Batch struct {
	IDs   []kv.LeaseID
	parts []part
}

// part is what one caller has in a batch.
type part struct {
	leases int
	done   func(renewed []lease.Renewal, err error)
}

// Join adds the renewal of at most MaxBatchLeases leases; done is called once, by the caller of Answered. If Join returns a
// batch, the caller has that asked for, and then calls Answered.
func (b *Batches) Join(ids []kv.LeaseID, done func(renewed []lease.Renewal, err error)) *Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := len(b.queue) - 1
	if last < 0 || len(b.queue[last].IDs)+len(ids) > MaxBatchLeases {
		b.queue = append(b.queue, &Batch{})
		last++
	}
	batch := b.queue[last]
	batch.IDs = append(batch.IDs, ids...)
	batch.parts = append(batch.parts, part{leases: len(ids), done: done})
	if b.asked == maxBatches {
		return nil
	}
	b.asked++
	return b.take()
}

// Answered tells all callers of a batch what became of their leases, or the error. If it returns another batch, the caller has
// that asked for next.
func (b *Batches) Answered(batch *Batch, renewed []lease.Renewal, err error) (next *Batch) {
	b.mu.Lock()
	if next = b.take(); next == nil {
		b.asked--
	}
	b.mu.Unlock()
	for _, p := range batch.parts {
		if err != nil {
			p.done(nil, err)
			continue
		}
		p.done(renewed[:p.leases:p.leases], nil)
		renewed = renewed[p.leases:]
	}
	return next
}

// take returns the batch that has waited longest, or nil.
func (b *Batches) take() *Batch {
	if len(b.queue) == 0 {
		return nil
	}
	first := b.queue[0]
	b.queue[0] = nil
	b.queue = b.queue[1:]
	return first
}
