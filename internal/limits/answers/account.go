package answers

import (
	"context"
	"runtime"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/limits/admission"
)

// Account implements kv.Account.
type Account struct {
	call  context.Context // of the request that is answered; its client is looked up for large answers only
	most  int64
	taken int64
	once  bool // Encoded was called
	known bool // share.host is set
	share *share
}

// know looks up the host that gets the answer. It must be called before bytes are counted.
func (r *Account) know() {
	if r.known {
		return
	}
	r.known = true
	r.share.host = admission.CallerOf(r.call).Host
	runtime.AddCleanup(r, (*share).release, r.share)
}

// Take implements kv.Account. The errors are kv.ErrAnswerTooLarge and kv.ErrAnswersBusy.
func (r *Account) Take(bytes int) error {
	r.taken += int64(bytes)
	need := r.need()
	switch {
	case r.taken > r.most || need > r.share.budget.total:
		return kv.ErrAnswerTooLarge
	case need <= freeBytes:
		return nil
	}
	return r.grow(need)
}

// Walk implements kv.Account. The error is that of the call's context.
func (r *Account) Walk(int) error {
	runtime.Gosched()
	return r.call.Err()
}

// need is the part of the budget that the taken bytes need.
func (r *Account) need() int64 {
	if r.once {
		return r.taken
	}
	return copies * r.taken
}

// Encoded notes that Take has been called for all memory of the answer, that of its encoding included.
func (r *Account) Encoded() { r.once = true }

func (r *Account) grow(need int64) error {
	r.know()
	s, b := r.share, r.share.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if need <= s.bytes {
		return nil
	}
	h := b.host(s.host)
	defer b.forget(h)
	if s.bytes == 0 && len(h.waiting) > 0 {
		return kv.ErrAnswersBusy // it does not overtake waiters of its host
	}
	more := max(need-s.bytes, min(stepBytes, b.total-s.bytes))
	if !b.fits(h, s, more) {
		if more = need - s.bytes; !b.fits(h, s, more) {
			return kv.ErrAnswersBusy
		}
	}
	b.give(h, s, more)
	return nil
}

// Counted reports whether the account has bytes of the budget: the answer is large.
func (r *Account) Counted() bool { return r.need() > freeBytes }

// Address sets the call that the answer is for.
func (r *Account) Address(ctx context.Context) {
	r.call = ctx
	s, b := r.share, r.share.budget
	if !r.known {
		return
	}
	name := admission.CallerOf(ctx).Host
	b.mu.Lock()
	defer b.mu.Unlock()
	bytes := s.bytes
	if s.host == name || bytes == 0 {
		s.host = name
		return
	}
	b.take(s, bytes)
	s.host = name
	b.give(b.host(name), s, bytes)
}

// Release implements kv.Account.
func (r *Account) Release() { r.share.release() }
