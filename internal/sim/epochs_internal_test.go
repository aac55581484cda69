package sim

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// Ensure that the checkers' view of a superseded member does not depend on the rule under test: a member that has met a newer
// epoch without a quorum counts as one that knows it, until it is in contact with a leader of its own epoch.
func TestEpochWatch_Knew(t *testing.T) {
	claim := func(number uint64) identity.Claim {
		return identity.Claim{Cluster: 1, Member: 2, Epoch: consensus.Epoch{Number: number}, Life: consensus.Life{Boots: 1}}
	}
	for _, rules := range []identity.Rules{{}, {ServeSuperseded: true}} {
		w := newEpochWatch(claim(1), rules, time.Second)
		w.Led(time.Second)
		w.Meet(claim(2), identity.Dialled, 2*time.Second)
		if w.Knew(time.Minute) {
			t.Error("a member that had a quorum is taken for one that knew")
		}
		w.Meet(claim(0), identity.Dialled, time.Minute)
		if w.Knew(2 * time.Minute) {
			t.Error("an older epoch is taken for a newer one")
		}
		w.Meet(claim(2), identity.Dialled, time.Minute)
		if w.Knew(time.Minute) || !w.Knew(time.Minute+2*time.Second) {
			t.Error("it knows at once, or never")
		}
		if got := w.State(2*time.Minute) == identity.Superseded; got == rules.ServeSuperseded {
			t.Errorf("superseded: %t with rules %+v", got, rules)
		}
		w.Led(2 * time.Minute)
		if w.Knew(3 * time.Minute) {
			t.Error("it hears a leader of its own epoch, and is still taken for superseded")
		}
	}
}
