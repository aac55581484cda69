package rpc

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Ensure that a few calls run, a few more wait, the rest is refused, and that whoever gives up waits no more.
func TestTurns_enter(t *testing.T) {
	turns := newTurns(1)
	leave, err := turns.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, maxTurnsWaited)
	for range maxTurnsWaited {
		go func() {
			_, err := turns.enter(ctx)
			ended <- err
		}()
	}
	for allWait := false; !allWait; runtime.Gosched() {
		turns.mu.Lock()
		allWait = turns.waiting == maxTurnsWaited
		turns.mu.Unlock()
	}
	if _, err := turns.enter(t.Context()); !errors.Is(err, rpctypes.ErrGRPCRequestTooManyRequests) {
		t.Fatalf("one too many: got %v", err)
	}
	cancel()
	for range maxTurnsWaited {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("one that gave up: got %v", err)
		}
	}
	next := make(chan error)
	go func() {
		leave, err := turns.enter(t.Context())
		if err == nil {
			leave()
		}
		next <- err
	}()
	leave()
	if err := <-next; err != nil {
		t.Fatalf("the next: %v", err)
	}
}

// Ensure that one address can not take what all may have, and that what is given back can be had again.
func TestShares_enter(t *testing.T) {
	s := newShares(3, 2)
	first, _ := s.enter("a")
	if _, entered := s.enter("a"); !entered {
		t.Fatal("the second of two was refused")
	}
	if _, entered := s.enter("a"); entered {
		t.Fatal("one address has three")
	}
	if _, entered := s.enter("b"); !entered {
		t.Fatal("another address was refused")
	}
	if _, entered := s.enter("c"); entered {
		t.Fatal("four of three are taken")
	}
	first()
	if _, entered := s.enter("c"); !entered {
		t.Fatal("what was given back can not be had")
	}
	if open, refused := s.counts(); open != 3 || refused != 2 {
		t.Errorf("%d open, %d refused; want 3 and 2", open, refused)
	}
}
