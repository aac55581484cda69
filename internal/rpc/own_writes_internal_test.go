package rpc

import (
	"context"
	"testing"
	"time"
)

// Ensure that waiting for own writes leaves time to answer, whatever the caller's deadline.
func TestWaitForOwn(t *testing.T) {
	if got := waitForOwn(t.Context()); got != ownWritesPatience {
		t.Errorf("without a deadline: %v", got)
	}
	for _, left := range []time.Duration{time.Hour, time.Minute / 60, time.Second / 2} {
		ctx, cancel := context.WithTimeout(t.Context(), left)
		if got := waitForOwn(ctx); got > ownWritesPatience || got > left/2 {
			t.Errorf("with %v left: %v", left, got)
		}
		cancel()
	}
}

// Ensure that a read waits for a write until it is applied, or until one read has waited for it in vain.
func TestOwnWrites_missing(t *testing.T) {
	var o ownWrites
	if got := o.missing(5); got != 0 {
		t.Errorf("nothing was answered: %d", got)
	}
	o.note(7)
	o.note(6)
	if got := o.missing(6); got != 7 {
		t.Errorf("applied up to 6: %d, want 7", got)
	}
	if got := o.missing(7); got != 0 {
		t.Errorf("applied up to 7: %d", got)
	}
	raise(&o.givenUp, 7)
	if got := o.missing(6); got != 0 {
		t.Errorf("after 7 was given up: %d", got)
	}
	o.note(8)
	if got := o.missing(6); got != 8 {
		t.Errorf("after another write: %d, want 8", got)
	}
}
