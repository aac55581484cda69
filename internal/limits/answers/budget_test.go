package answers

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/kv"
)

const mib = 1 << 20

func TestAccount_Take(t *testing.T) {
	b := New(8*mib, 3*mib)
	small := b.Open(0)
	if err := small.Take(freeBytes / copies); err != nil || b.UsedBytes() != 0 {
		t.Errorf("a small answer: %v, %d bytes are counted", err, b.UsedBytes())
	}
	large := b.Open(0)
	for range 3 {
		if err := large.Take(mib); err != nil {
			t.Fatal(err)
		}
	}
	if used := b.UsedBytes(); used < 6*mib {
		t.Errorf("3 MiB twice are counted as %d", used)
	}
	if err := large.Take(1); !errors.Is(err, kv.ErrAnswerTooLarge) {
		t.Errorf("more than one may have: %v", err)
	}
	if err := b.Open(0).Take(2 * mib); !errors.Is(err, kv.ErrAnswersBusy) {
		t.Errorf("more than there is: %v", err)
	}
	large.Release()
	large.Release()
	if used := b.UsedBytes(); used != 0 {
		t.Errorf("%d bytes are left", used)
	}
	encoded := b.Open(0)
	encoded.Encoded()
	if err := encoded.Take(mib); err != nil || b.UsedBytes() > 2*mib-1 || !encoded.Counted() {
		t.Errorf("1 MiB that is not encoded again: %v, %d bytes are counted", err, b.UsedBytes())
	}
	encoded.Release()
	if err := New(mib, 3*mib).Open(0).Take(mib); !errors.Is(err, kv.ErrAnswerTooLarge) {
		t.Errorf("more than all accounts together may have: %v", err)
	}
}

// Ensure that many answers at once, each half the budget, are all built and never exceed it.
func TestBudget_Build_many(t *testing.T) {
	b := New(8*mib, 4*mib)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			err := b.Build(t.Context(), 0, func(r kv.Account) error {
				for range 16 {
					if err := r.Take(mib / 8); err != nil {
						return err
					}
					if used := b.UsedBytes(); used > 8*mib {
						t.Errorf("%d bytes are used", used)
					}
					runtime.Gosched()
				}
				r.Release()
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if used := b.UsedBytes(); used != 0 || b.Stats().Refused != 0 {
		t.Errorf("%d bytes are left, %d refused", used, b.Stats().Refused)
	}
}

func TestBudget_Build_ended(t *testing.T) {
	b := New(mib, mib)
	all := b.Open(0)
	if err := all.Take(mib / copies); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	take := func(r kv.Account) error { return r.Take(mib / 4) }
	if err := b.Build(ctx, 0, take); !errors.Is(err, context.Canceled) || b.Stats().Refused != 1 {
		t.Errorf("%v, %d refused", err, b.Stats().Refused)
	}
	if b.ReadyNow(ctx) {
		t.Error("it is ready though Ready would wait")
	}
	if err := b.Ready(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("ready: %v", err)
	}
	all.Release()
	if !b.ReadyNow(ctx) {
		t.Error("it is not ready though Ready would not wait")
	}
	if err := b.Ready(ctx); err != nil {
		t.Errorf("not ready: %v", err)
	}
	if err := b.Build(ctx, 0, take); err != nil {
		t.Error(err)
	}
}

// Ensure that an account that becomes garbage gives back its bytes.
func TestAccount_forgotten(t *testing.T) {
	b := New(mib, mib)
	func() {
		if err := b.Open(0).Take(mib / copies); err != nil {
			t.Fatal(err)
		}
	}()
	waited := make(chan error, 1)
	go func() { waited <- b.Ready(t.Context()) }()
	for {
		runtime.GC()
		select {
		case err := <-waited:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}
