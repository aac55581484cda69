package prover_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/server/prover"
	"github.com/quorate/quorate/internal/storage/objects"
)

// hanging is a place that does not answer, and heeds no cancel, until it is let go: when it lists, opens an object, or reads it.
type hanging struct {
	objects.Store
	at    string
	asked chan struct{}
	goes  chan struct{}
	ended atomic.Int64
}

func (h *hanging) hang(at string) {
	if h.at != at {
		return
	}
	h.asked <- struct{}{}
	<-h.goes
	h.ended.Add(1)
}

// List implements objects.Store.
func (h *hanging) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, bool, error) {
	h.hang("list")
	return h.Store.List(ctx, prefix, after, limit)
}

// Get implements objects.Store.
func (h *hanging) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	h.hang("get")
	from, err := h.Store.Get(ctx, name, offset, length)
	return &hangingBody{from, h}, err
}

type hangingBody struct {
	io.ReadCloser
	h *hanging
}

// Read implements io.Reader.
func (b *hangingBody) Read(p []byte) (int, error) {
	b.h.hang("read")
	return b.ReadCloser.Read(p)
}

// Ensure that a member whose place hangs proves again in its next turn, after another member had one, and ends.
func TestProver_Run_hangs(t *testing.T) {
	for _, at := range []string{"open", "list", "get", "read"} {
		m := newMember(t)
		h := &hanging{Store: m.place, at: at, asked: make(chan struct{}, 99), goes: make(chan struct{})}
		var row atomic.Pointer[kv.BackupRow]
		set := func(number, member uint64) {
			next := *m.row
			next.Proofs.Number, next.Proofs.Member = number, member
			row.Store(&next)
		}
		set(7, 3)
		m.o.Row, m.o.LookEvery = row.Load, 10*time.Millisecond
		m.o.Propose = func(context.Context, *kv.Command) (kv.Result, error) { return kv.Result{}, nil }
		m.o.Open = func(string) (objects.Store, func(), error) {
			h.hang("open")
			return h, func() {}, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			prover.New(m.o).Run(ctx)
		}()
		within(t, at+": the first proof", h.asked)
		set(8, 4)
		set(9, 3)
		within(t, at+": the second proof", h.asked)
		cancel()
		within(t, at+": the end", ended)
		if h.ended.Load() > 0 {
			t.Errorf("%s: it did not hang", at)
		}
		close(h.goes)
	}
}

// within waits for what should come soon.
func within(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		t.Fatal(what + " does not come")
	}
}
