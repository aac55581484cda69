package answers

import (
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/kv"
)

const (
	// maxWaiting bounds the waiters, maxHostWaiting those of one host.
	maxWaiting     = 1000
	maxHostWaiting = 250
	// patience is the longest wait of one waiter.
	patience = 5 * time.Second
)

// reserve waits for bytes: the waiters of one host in the order of arrival, and hosts in turn. A waiter that asks for more than
// is free does not keep others from getting bytes.
func (r *Account) reserve(ctx context.Context, bytes int64) error {
	if bytes <= 0 {
		return nil
	}
	r.know()
	s, b := r.share, r.share.budget
	bytes = min(bytes, b.total)
	b.mu.Lock()
	h := b.host(s.host)
	if len(h.waiting) == 0 && b.fits(h, s, bytes) {
		b.give(h, s, bytes)
		b.mu.Unlock()
		return nil
	}
	if b.waiting >= maxWaiting || len(h.waiting) >= maxHostWaiting {
		b.forget(h)
		b.mu.Unlock()
		b.refused.Add(1)
		return kv.ErrAnswersBusy
	}
	w := &waiter{share: s, bytes: bytes, granted: make(chan struct{})}
	b.join(h, w)
	b.sweep(time.Now())
	b.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var err error
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = kv.ErrAnswersBusy
	}
	return b.settle(w, err)
}

func (b *Budget) join(h *host, w *waiter) {
	if len(h.waiting) == 0 {
		b.queue.PushBack(&h.place, h)
	}
	h.waiting = append(h.waiting, w)
	b.waiting++
}

// settle ends a wait. Bytes that were granted just before are kept.
func (b *Budget) settle(w *waiter, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[w.share.host]
	at := -1
	if h != nil {
		at = slices.Index(h.waiting, w)
	}
	if at < 0 {
		return nil
	}
	h.waiting = slices.Delete(h.waiting, at, at+1)
	b.left(h)
	b.forget(h)
	b.admit() // waiters behind it may need fewer bytes
	b.refused.Add(1)
	return err
}
