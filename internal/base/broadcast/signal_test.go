package broadcast_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/broadcast"
)

func woken(next <-chan struct{}) bool {
	select {
	case <-next:
		return true
	default:
		return false
	}
}

// Ensure that a Send wakes all goroutines that waited before it, and none that comes later.
func TestSignal_Send(t *testing.T) {
	var s broadcast.Signal
	s.Send()
	one, two := s.Next(), s.Next()
	if woken(one) || woken(two) {
		t.Error("what was sent before wakes who came later")
	}
	s.Send()
	if later := s.Next(); !woken(one) || !woken(two) || woken(later) {
		t.Error("not everybody who waited was woken, or somebody who came later was")
	}
}

// Ensure that a pause ends with its time, or with the context and why that ended.
func TestPause(t *testing.T) {
	if err := broadcast.Pause(t.Context(), 0); err != nil {
		t.Errorf("no pause: %v", err)
	}
	why := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := broadcast.Pause(ctx, time.Hour); !errors.Is(err, why) {
		t.Errorf("an ended context: %v", err)
	}
}
