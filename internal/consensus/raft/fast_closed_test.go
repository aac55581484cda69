package raft_test

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that closing the fast path, on members that start again, loses no write that was answered on it, and that it is
// closed.
func TestReplica_Step_fastClosed(t *testing.T) {
	closed := false
	c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) {
		o.PreVote, o.CheckQuorum = false, false
		o.Fast.Footprint, o.Fast.Closed = footprintOf, closed
	})
	l := newFastLaws(c)
	c.elect(1)
	c.tick(1)
	c.proposeFast(2, "a=x")
	(&script{cluster: c}).fastOnly()
	c.net = nil
	if len(l.wins) != 1 {
		t.Fatalf("%d were won, want 1", len(l.wins))
	}
	closed = true
	for _, n := range c.nodes {
		n.crash()
		n.start()
	}
	c.isolate(1, true)
	c.node(2).step(raft.Campaign{})
	c.settle()
	c.tick(3)
	c.isolate(1, false)
	c.proposeFast(3, "b=y")
	c.tick(3)
	if got := c.node(3).store.commands; len(got) != 2 || got[0] != "a=x" || l.broken != "" {
		t.Errorf("applied %v, broken %q", got, l.broken)
	}
	if len(l.wins) != 1 {
		t.Errorf("%d were won, the last one while the fast path was closed", len(l.wins))
	}
}

// Ensure that a member which holds records does not start without Footprint and State: it would forget the records.
func TestNew_holdsUnknown(t *testing.T) {
	restored := raft.Restored{
		Base:    consensus.Founding(testConfig([]memberID{1}, nil)),
		Records: []consensus.Record{{Attempt: consensus.Attempt{Proposal: proposalOf(1, "a").ID, Revision: 1}}},
	}
	if _, err := raft.New(raft.Defaults(1), restored); !errors.Is(err, raft.ErrRestored) {
		t.Errorf("started: %v", err)
	}
}
