package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/kv/apply"
)

// heldBackend holds up calls of History that read its state machine, up to a number of them.
type heldBackend struct {
	*machineBackend
	hold  atomic.Int64 // so many more
	held  atomic.Int64
	until chan struct{}
}

func (b *heldBackend) Machine() (*apply.Machine, func()) {
	if bytes.Contains(debug.Stack(), []byte("historyService).readFor.func")) && b.hold.Add(-1) >= 0 {
		b.held.Add(1)
		<-b.until
	}
	return b.machineBackend.Machine()
}

// Ensure that a call for deleted keys has its turn before it holds the store, which it would else do as long as it waits.
func TestHistory_Deleted_turnBeforeStore(t *testing.T) {
	b := &heldBackend{machineBackend: newMachineBackend(t), until: make(chan struct{})}
	api := historyOf(t, serve(t, b, nil).client(t))
	ask := func(ctx context.Context) error {
		_, err := api.Deleted(ctx, &quoratepb.DeletedRequest{Key: []byte("a"), RangeEnd: []byte("b")})
		return err
	}
	if err := ask(waitContext(t)); err != nil {
		t.Fatal(err)
	}
	const turns = 2
	b.hold.Store(turns)
	ended := make(chan error)
	for range turns {
		go func() { ended <- ask(waitContext(t)) }()
	}
	await(t, func() bool { return b.held.Load() == turns })
	short, cancel := context.WithTimeout(waitContext(t), 100*time.Millisecond)
	defer cancel()
	if err := ask(short); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a call beyond the turns: got %v", err)
	}
	close(b.until)
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Error(err)
	}
}
