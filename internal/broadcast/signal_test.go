package broadcast_test

import (
	"testing"

	"github.com/quorate/quorate/internal/broadcast"
)

func woken(next <-chan struct{}) bool {
	select {
	case <-next:
		return true
	default:
		return false
	}
}

// Ensure that a Send wakes all who waited before it, and nobody who comes later.
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
