package upkeep

import (
	"testing"

	"github.com/quorate/quorate/internal/kv"
)

// Ensure that a new compactor looks for work once, and then only when the compact revision has moved up.
func TestCompactor_Consider(t *testing.T) {
	s := NewCompactor(nil, CompactionPace{})
	woken := func() bool {
		select {
		case <-s.signal:
			return true
		default:
			return false
		}
	}
	if !woken() || woken() {
		t.Error("what a restart interrupted does not go on once")
	}
	for _, step := range []struct {
		compacted kv.Revision
		wakes     bool
	}{{-1, false}, {0, true}, {0, false}, {5, true}, {5, false}, {4, false}, {6, true}} {
		if s.Consider(step.compacted, false); woken() != step.wakes {
			t.Errorf("at compact revision %d: woken %t, want %t", step.compacted, !step.wakes, step.wakes)
		}
	}
	if s.Consider(6, true); !woken() {
		t.Error("keys to count do not wake it")
	}
}
