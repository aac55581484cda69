package admission

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Ensure that a few calls run, a few more wait, the rest is refused, and that a call that gives up waits no more.
func TestQueue_Enter(t *testing.T) {
	const maxWaiting = 64
	q := NewQueue(1, maxWaiting)
	leave, err := q.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, maxWaiting)
	for range maxWaiting {
		go func() {
			_, err := q.Enter(ctx)
			ended <- err
		}()
	}
	for allWait := false; !allWait; <-time.After(time.Millisecond) {
		q.mu.Lock()
		allWait = q.waiting == maxWaiting
		q.mu.Unlock()
	}
	if _, err := q.Enter(t.Context()); !errors.Is(err, ErrQueueFull) {
		t.Fatalf("one too many: got %v", err)
	}
	cancel()
	for range maxWaiting {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("one that gave up: got %v", err)
		}
	}
	next := make(chan error)
	go func() {
		leave, err := q.Enter(t.Context())
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
