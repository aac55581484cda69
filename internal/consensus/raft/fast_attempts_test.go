package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus/rules"
)

// Ensure that no voter holds two attempts of one proposal, whatever it touches: else both could be recovered, and the lower
// one, which was reported to no client, would be applied first. A proposal that touches nothing conflicts with no other.
func TestReplica_Step_fastTwoAttempts(t *testing.T) {
	x := newStory(5, rules.Set{})
	x.fast("P", "-", 3, 4, 5)
	x.leads(2, 1, 3)
	x.give(2, 1, 3, 4, 5)
	x.fast("A", "b", 4, 3)
	x.slow("Z", "d", 2)
	x.fast("P", "-", 3, 2, 3, 4, 5)
	x.leads(4, 5, 3)
	x.give(4, 5, 3)
	if x.laws.broken != "" {
		t.Errorf("%s\n%s", x.laws.broken, x.trace)
	}
}

// Ensure the same of a leader that holds another attempt from its time as a follower.
func TestReplica_Step_fastTwoAttemptsOfLeader(t *testing.T) {
	for _, holds := range []bool{false, true} {
		x := newStory(5, rules.Set{})
		if holds {
			x.fast("P", "-", 3, 2)
		}
		x.leads(2, 1, 3)
		x.give(2, 1, 3, 4, 5)
		x.slow("Z", "d", 2)
		x.fast("P", "-", 3, 2)
		if answered := x.node(2).replica.FastCounts().Answered; (answered == 1) == holds {
			t.Errorf("member 2 holds another attempt: %t, and answered %d", holds, answered)
		}
	}
}
