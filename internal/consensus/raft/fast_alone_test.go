package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that the only voter leads again by itself, and does not campaign in every Step, if its log ends with a change by
// protocol apply whose commit it forgot: the members that the change adds have no vote yet.
func TestReplica_Step_aloneButAsks(t *testing.T) {
	c := newCluster([]memberID{1}, []memberID{2}, func(o *raft.Options) { o.Fast.Footprint = footprintOf })
	c.lossy = true
	l := newLaws()
	l.watch(c)
	c.elect(1)
	c.tick(2)
	c.node(1).holdApply = true
	c.request(1, consensus.ChangeRequest{
		Protocol: consensus.ProtocolApply, Steps: []consensus.ChangeStep{{Kind: consensus.ChangePromote, Member: consensus.Member{ID: 2}}},
	})
	c.settle()
	c.node(1).holdApply = false
	c.node(1).crash()
	c.node(1).start()
	before := c.node(1).replica.Term()
	c.isolate(2, true)
	c.tick(5)
	if s := c.node(1).replica.Status(); s.Role != raft.Leader || s.Term > before+2 {
		t.Fatalf("%v at term %d after %d: want a leader, after few terms", s.Role, s.Term, before)
	}
	c.isolate(2, false)
	c.tick(60)
	if s := c.node(1).replica.Status(); s.Leader == consensus.NoMember || !s.Config.IsVoter(2) || s.Term > before+6 || l.broken != "" {
		t.Errorf("member 1 follows %v at term %d, began at %d, config %s, broken %q", s.Leader, s.Term, before, describeConfig(&s.Config), l.broken)
	}
}
