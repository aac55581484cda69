package answers

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
	// freeBytes of each account are not counted: nearly all answers are smaller and need no lock.
	freeBytes = 64 << 10
	// stepBytes is the least by which an account grows.
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

// UsedBytes is what all accounts have now.
func (b *Budget) UsedBytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Refused is how many answers were refused.
func (b *Budget) Refused() uint64 { return b.refused.Load() }

// Open returns an empty account that may grow to mostBytes; zero means MostBytes.
func (b *Budget) Open(mostBytes int64) *Account {
	if mostBytes <= 0 || mostBytes > b.most {
		mostBytes = b.most
	}
	return &Account{most: mostBytes, share: &share{budget: b}}
}

// Build calls build with an account, and again if the budget was used up, once as much is free. If build returns nil,
// it keeps the account and must release it. The error is build's, kv.ErrAnswersBusy if nothing was free for too long,
// or that of ctx.
func (b *Budget) Build(ctx context.Context, mostBytes int64, build func(kv.Account) error) error {
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

// Ready waits until some of the budget is free. It must be called before a request that cannot be undone is proposed.
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

// Account implements kv.Account.
type Account struct {
	most  int64
	taken int64
	share *share
}

// share is what an account has of the budget. It is an object of its own so that a cleanup gives it back if the account is
// garbage and was never released.
type share struct {
	budget *Budget
	bytes  int64 // guarded by budget.mu
}

// Take implements kv.Account. The errors are kv.ErrAnswerTooLarge and kv.ErrAnswersBusy.
func (r *Account) Take(bytes int) error {
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

func (r *Account) grow(need int64) error {
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
func (b *Budget) give(r *Account, bytes int64) {
	if r.share.bytes == 0 {
		runtime.AddCleanup(r, (*share).release, r.share)
	}
	r.share.bytes += bytes
	b.used += bytes
}

// reserve waits for bytes, in the order of arrival.
func (r *Account) reserve(ctx context.Context, bytes int64) error {
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

// settle ends a wait. Bytes that were granted at the moment in which the wait ended are kept.
func (r *Account) settle(w *waiter, err error) error {
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

// admit grants bytes to those that wait, in their order, as far as the budget goes.
func (b *Budget) admit() {
	for len(b.waiting) > 0 && b.used+b.waiting[0].bytes <= b.total {
		w := b.waiting[0]
		b.waiting = b.waiting[1:]
		b.used += w.bytes
		close(w.granted)
	}
}

// Release implements kv.Account.
func (r *Account) Release() { r.share.release() }

func (s *share) release() {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= s.bytes
	s.bytes = 0
	b.admit()
}
