package answers

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/limits/admission"
)

// Open returns an empty account that may grow to mostBytes; zero means MostBytes. Address sets its call later.
func (b *Budget) Open(mostBytes int64) *Account {
	return b.OpenFor(context.Background(), mostBytes)
}

// OpenFor is Open for an answer to the call of ctx.
func (b *Budget) OpenFor(ctx context.Context, mostBytes int64) *Account {
	if mostBytes <= 0 || mostBytes > b.most {
		mostBytes = b.most
	}
	return &Account{call: ctx, most: mostBytes, share: &share{budget: b}}
}

// Build calls build with an account for the answer to the call of ctx, and again if the budget was used up, once twice as much
// as the account had is free. If build returns nil, it keeps the account and must release it. The error is build's,
// kv.ErrAnswersBusy if no bytes became free in time, or that of ctx.
func (b *Budget) Build(ctx context.Context, mostBytes int64, build func(kv.Account) error) error {
	need := int64(0)
	for {
		r := b.OpenFor(ctx, mostBytes)
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
		need = max(need, 2*r.need())
	}
}

// Lend takes bytes for data made from an answer, for the caller of ctx, until giveBack is called. With patient zero it returns
// an error if the bytes are not free; else it waits at most about so long, or until ctx ends. The errors are kv.ErrAnswersBusy
// and that of ctx.
func (b *Budget) Lend(ctx context.Context, bytes int64, patient time.Duration) (giveBack func(), err error) {
	r := b.OpenFor(ctx, 0)
	r.know()
	for begun := time.Now(); ; {
		round := time.Now()
		if patient > 0 {
			err = r.reserve(ctx, bytes)
		} else if !b.lendNow(r.share, min(bytes, b.total)) {
			b.refused.Add(1)
			err = kv.ErrAnswersBusy
		}
		if err == nil {
			return r.Release, nil
		}
		if !errors.Is(err, kv.ErrAnswersBusy) || time.Since(begun) >= patient || time.Since(round) < patience {
			return nil, err // a round shorter than patience means that too many wait
		}
	}
}

// lendNow takes bytes if they are free, without waiting.
func (b *Budget) lendNow(s *share, bytes int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.host(s.host)
	defer b.forget(h)
	if len(h.waiting) > 0 || !b.fits(h, s, bytes) {
		return false
	}
	b.give(h, s, bytes)
	return true
}

// Ready waits until some of the budget is free for the host of ctx. It must be called before a request that cannot be undone is
// proposed.
func (b *Budget) Ready(ctx context.Context) error {
	r := b.OpenFor(ctx, 0)
	defer r.Release()
	return r.reserve(ctx, min(stepBytes, b.total/copies))
}

// ReadyNow reports whether Ready would not wait now.
func (b *Budget) ReadyNow(ctx context.Context) bool {
	name := admission.CallerOf(ctx).Host
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[name]
	if h == nil {
		h = &host{}
	}
	return len(h.waiting) == 0 && b.fits(h, &share{}, min(stepBytes, b.total/copies))
}
