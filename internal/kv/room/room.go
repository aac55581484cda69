// Package room bounds the memory of answers. A Budget is what all answers of a member may take at once, a Room what one of
// them has of it.
//
// A Room grows while its answer is collected. It never waits for more, since others that wait could hold what it waits
// for: if there is none, its answer is dropped, and collected again when so much is free (Build).
package room

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/kv"
)

const (
	// DefaultTotalBytes is Budget's total if none is given.
	DefaultTotalBytes = 1 << 30
	// DefaultMostBytes is what one answer may have if nothing is said.
	DefaultMostBytes = 512 << 20

	// An answer is in memory twice, as it was collected and as it goes over the wire.
	copies = 2
	// freeBytes of each room are not counted: nearly all answers are smaller and touch nothing that is shared.
	freeBytes = 64 << 10
	// stepBytes is by how much a room grows at least.
	stepBytes = 256 << 10

	maxWaiting = 1000
	patience   = 5 * time.Second
)

// Budget is the memory for answers. Its methods may be called by several goroutines.
type Budget struct {
	total, most int64
	refused     atomic.Uint64

	mu      sync.Mutex
	used    int64
	waiting []*waiter // in the order of arrival
}

// waiter waits for bytes. granted is closed when it has them.
type waiter struct {
	bytes   int64
	granted chan struct{}
}

// New returns a budget of totalBytes, and of mostBytes for one answer. Zero or less means the default.
func New(totalBytes, mostBytes int64) *Budget {
	b := &Budget{total: totalBytes, most: mostBytes}
	if b.total <= 0 {
		b.total = DefaultTotalBytes
	}
	if b.most <= 0 {
		b.most = DefaultMostBytes
	}
	return b
}

// MostBytes is what one answer may have.
func (b *Budget) MostBytes() int64 { return b.most }

// UsedBytes is what all rooms have now.
func (b *Budget) UsedBytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Refused is how many answers found no room.
func (b *Budget) Refused() uint64 { return b.refused.Load() }

// Open returns an empty room that may grow to mostBytes, zero: as much as any.
func (b *Budget) Open(mostBytes int64) *Room {
	if mostBytes <= 0 || mostBytes > b.most {
		mostBytes = b.most
	}
	return &Room{most: mostBytes, share: &share{budget: b}}
}

// Build calls build with a room, and again whenever others had taken what it needed meanwhile. The room is build's to keep
// if it returns nil. The error is build's, kv.ErrAnswersBusy if there was no room for too long, or that of ctx.
func (b *Budget) Build(ctx context.Context, mostBytes int64, build func(kv.Room) error) error {
	need := int64(0)
	for {
		r := b.Open(mostBytes)
		if err := r.reserve(ctx, need); err != nil {
			return err
		}
		err := build(r)
		if err == nil {
			return nil
		}
		r.Release()
		if !errors.Is(err, kv.ErrAnswersBusy) {
			if errors.Is(err, kv.ErrAnswerTooLarge) {
				b.refused.Add(1)
			}
			return err
		}
		need = max(need, 2*copies*r.taken)
	}
}

// Ready waits until not all of the budget is taken: who asks for something that can not be taken back should ask before.
func (b *Budget) Ready(ctx context.Context) error {
	b.mu.Lock()
	free := b.used < b.total && len(b.waiting) == 0
	b.mu.Unlock()
	if free {
		return nil
	}
	r := b.Open(0)
	defer r.Release()
	return r.reserve(ctx, stepBytes)
}

// Room implements kv.Room.
type Room struct {
	most  int64
	taken int64
	share *share
}

// share is what a room has of the budget. It outlives the room, so that one that is forgotten gives it back.
type share struct {
	budget *Budget
	bytes  int64 // guarded by budget.mu
}

// Take implements kv.Room. The errors are kv.ErrAnswerTooLarge and kv.ErrAnswersBusy.
func (r *Room) Take(bytes int) error {
	r.taken += int64(bytes)
	need := copies * r.taken
	switch {
	case r.taken > r.most || need > r.share.budget.total:
		return kv.ErrAnswerTooLarge
	case need <= freeBytes:
		return nil
	}
	return r.grow(need)
}

func (r *Room) grow(need int64) error {
	s, b := r.share, r.share.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if need <= s.bytes {
		return nil
	}
	more := min(max(need-s.bytes, stepBytes), b.total-s.bytes)
	if b.used+more > b.total {
		return kv.ErrAnswersBusy
	}
	b.give(r, more)
	return nil
}

// give is called with the lock held.
func (b *Budget) give(r *Room, bytes int64) {
	if r.share.bytes == 0 {
		runtime.AddCleanup(r, (*share).release, r.share)
	}
	r.share.bytes += bytes
	b.used += bytes
}

// reserve waits for bytes, in the order of arrival.
func (r *Room) reserve(ctx context.Context, bytes int64) error {
	if bytes <= 0 {
		return nil
	}
	b := r.share.budget
	bytes = min(bytes, b.total)
	b.mu.Lock()
	if len(b.waiting) == 0 && b.used+bytes <= b.total {
		b.give(r, bytes)
		b.mu.Unlock()
		return nil
	}
	if len(b.waiting) >= maxWaiting {
		b.mu.Unlock()
		b.refused.Add(1)
		return kv.ErrAnswersBusy
	}
	w := &waiter{bytes: bytes, granted: make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var err error
	select {
	case <-w.granted:
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = kv.ErrAnswersBusy
	}
	return r.settle(w, err)
}

// settle ends a wait. What was granted in the moment in which the wait ended is taken.
func (r *Room) settle(w *waiter, err error) error {
	b := r.share.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.granted: // admit has counted it
		b.used -= w.bytes
		b.give(r, w.bytes)
		return nil
	default:
	}
	for i, other := range b.waiting {
		if other == w {
			b.waiting = append(b.waiting[:i:i], b.waiting[i+1:]...)
			break
		}
	}
	b.admit()
	b.refused.Add(1)
	return err
}

// admit lets in who waits, as far as there is room.
func (b *Budget) admit() {
	for len(b.waiting) > 0 && b.used+b.waiting[0].bytes <= b.total {
		w := b.waiting[0]
		b.waiting = b.waiting[1:]
		b.used += w.bytes
		close(w.granted)
	}
}

// Release implements kv.Room.
func (r *Room) Release() { r.share.release() }

func (s *share) release() {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= s.bytes
	s.bytes = 0
	b.admit()
}
