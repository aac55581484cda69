package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that a member takes the fast path again after a change, also if it has the new configuration already when the leader
// refuses a proposal under the one before.
func TestReplica_Propose_fastAfterChange(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, []memberID{4}, func(o *raft.Options) { o.Fast.Footprint = footprintOf })
	c.elect(1)
	c.tick(3)
	c.change(1, consensus.ChangePromote, testMember(4))
	c.proposeFast(2, "a=late")
	c.settle()
	c.tick(3)
	if refusals := c.node(2).refusals; len(refusals) != 1 || refusals[0].Reason != consensus.ReasonStaleConfig {
		t.Fatalf("refused: %v, want one for the configuration", refusals)
	}
	for _, id := range []memberID{2, 3} {
		before := c.node(id).replica.FastCounts().Tried
		c.proposeFast(id, "b=again")
		c.settle()
		if tried := c.node(id).replica.FastCounts().Tried - before; tried != 1 {
			t.Errorf("member %v tried the fast path for %d of 1 proposals", id, tried)
		}
	}
}

// Ensure that a late refusal, which names an old configuration, binds a member only until the leader refuses a proposal under
// that one, too.
func TestReplica_Propose_lateRefusal(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, []memberID{4}, func(o *raft.Options) { o.Fast.Footprint = footprintOf })
	c.elect(1)
	c.tick(3)
	c.change(1, consensus.ChangePromote, testMember(4))
	c.settle()
	n := c.node(2)
	n.step(raft.Receive{Message: message{
		Kind: consensus.MsgProposeReply, From: 1, To: 2, Term: n.replica.Term(),
		Refusals: []consensus.Refusal{{Reason: consensus.ReasonStaleConfig, Config: consensus.ConfigID{Index: 1, Term: 1}}},
	}})
	for range 2 {
		c.propose(2, "x")
		c.settle()
	}
	if got := len(n.refusals); got != 2 || !n.replica.InForce().Committed {
		t.Errorf("%d refusals, want the late one and that of the first proposal after it", got)
	}
	if last := n.store.commands; len(last) == 0 || last[len(last)-1] != "x" {
		t.Errorf("the log holds %q: the second proposal was not taken", last)
	}
}
