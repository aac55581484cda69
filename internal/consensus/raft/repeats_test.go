package raft_test

import (
	"maps"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// logged counts the entries of each proposal in a member's log, by its number.
func (n *node) logged() map[uint64]int {
	count := map[uint64]int{}
	for i := range n.log {
		if id := n.log[i].Proposal; !id.IsZero() {
			count[id.Sequence]++
		}
	}
	return count
}

// Ensure that a leader does not log again a proposal that waits for its commit: proposers repeat proposals without an answer,
// and on links with a long queue each payload would go over all of them twice.
func TestReplica_Propose_repeated(t *testing.T) {
	proposals := []consensus.Proposal{proposalOf(1, "a"), proposalOf(2, "b")}
	for _, row := range []struct {
		name  string
		again func(c *cluster)
	}{
		{"by the leader itself", func(c *cluster) { c.node(1).step(raft.Propose{Proposals: proposals}) }},
		{"by another member", func(c *cluster) {
			c.node(1).step(raft.Receive{Message: message{
				Kind: consensus.MsgPropose, From: 2, To: 1, Term: c.node(1).replica.Term(), Proposals: proposals,
			}})
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCluster([]memberID{1, 2, 3}, nil, nil)
			c.elect(1)
			c.settle()
			c.slow(1)
			c.node(1).step(raft.Propose{Proposals: proposals})
			c.tick(c.opts(1).ElectionTicks)
			row.again(c)
			c.node(1).step(raft.Propose{Proposals: []consensus.Proposal{proposalOf(3, "c")}})
			c.settle()
			if got, want := c.node(1).logged(), (map[uint64]int{1: 1, 2: 1, 3: 1}); !maps.Equal(got, want) {
				t.Errorf("entries of each proposal: %v, want %v", got, want)
			}
			for _, n := range c.nodes {
				n.slowDisk = false
				n.sync(len(n.pending))
			}
			c.settle()
			c.tick(1)
			row.again(c) // from a proposer that has not learned of the end, or learned that the entry was skipped
			c.settle()
			if got, want := c.node(1).logged(), (map[uint64]int{1: 2, 2: 2, 3: 1}); !maps.Equal(got, want) {
				t.Errorf("after the commit: entries of each proposal: %v, want %v", got, want)
			}
		})
	}
}

// Ensure that a new leader does not log again the proposals that its predecessor has logged: all proposers repeat to it at
// once.
func TestReplica_Propose_repeatedToNewLeader(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	c.settle()
	c.slow(1)
	proposals := []consensus.Proposal{proposalOf(1, "a")}
	c.node(1).step(raft.Propose{Proposals: proposals})
	c.settle()
	c.isolate(1, true)
	n := c.node(2)
	for _, n := range c.nodes[1:] {
		n.slowDisk = false
		n.sync(len(n.pending)) // the entry is durable there, and the leader does not learn of it
	}
	c.settle()
	for range c.opts(1).ElectionTicks {
		n.step(raft.Tick{})
		c.node(3).step(raft.Tick{})
	}
	c.net = nil
	n.step(raft.Campaign{})
	for len(c.net) > 0 && (c.net[0].Kind != consensus.MsgVoteReply || c.net[0].From != 3) {
		c.deliverFirst()
	}
	if len(c.net) == 0 {
		t.Fatal("no vote came")
	}
	n.step(raft.Receive{Message: c.net[0]}, raft.Propose{Proposals: proposals})
	if got := n.logged()[1]; got != 1 || n.replica.Leader() != 2 {
		t.Errorf("member %v leads, and the proposal has %d entries; want one", n.replica.Leader(), got)
	}
}

// Ensure that a leader whose log does not commit remembers a bounded number of proposals, and logs those beyond it again.
func TestReplica_Propose_repeatedPastBound(t *testing.T) {
	const most = 1 << 16
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	c.settle()
	c.slow(1)
	proposals := make([]consensus.Proposal, most+1)
	for i := range proposals {
		proposals[i] = proposalOf(uint64(i+1), "a")
	}
	n := c.node(1)
	n.step(raft.Propose{Proposals: proposals})
	c.tick(c.opts(1).ElectionTicks)
	n.step(raft.Propose{Proposals: []consensus.Proposal{proposals[0], proposals[most-1], proposals[most]}})
	got := n.logged()
	if got[1] != 1 || got[most] != 1 || got[most+1] != 2 {
		t.Errorf("entries of the first proposal %d, of the last that is remembered %d, of the next %d; want 1, 1 and 2",
			got[1], got[most], got[most+1])
	}
}
