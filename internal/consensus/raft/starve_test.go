package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that, without pre-vote, a member whose log cannot win does not keep the others from campaigning: it campaigns again no
// earlier than they do.
func TestReplica_Step_loserWaits(t *testing.T) {
	late := 0
	for seed := range uint64(50) {
		c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) {
			o.PreVote, o.CheckQuorum, o.Seed = false, false, seed
		})
		c.elect(1)
		c.isolate(3, true)
		c.propose(1, "a")
		c.settle()
		c.isolate(3, false)
		c.node(3).step(raft.Campaign{})
		c.settle()
		for ticks := 0; c.leader() == nil; ticks++ {
			if ticks > 150 {
				late++
				break
			}
			c.tick(1)
		}
	}
	if late > 0 {
		t.Errorf("%d of 50 clusters had no leader after fifteen election timeouts", late)
	}
}
