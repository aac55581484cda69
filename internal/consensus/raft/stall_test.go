package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that a leader whose disk hangs gives way to a member whose disk works: it could go on to commit by the others' disks,
// but not apply, renew leases, or drop the requests queued for its own.
func TestReplica_Tick_leaderWithStalledDisk(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	n := c.node(1)
	n.slowDisk = true
	c.propose(1, "a")
	c.settle()
	c.tick(2*c.opts(1).ElectionTicks, 1, 2, 3)
	leader := c.leader()
	if leader == nil || leader.id == 1 {
		t.Fatalf("member 1 still leads after %d ticks without its disk", 2*c.opts(1).ElectionTicks)
	}
	c.propose(leader.id, "b")
	c.settle()
	n.slowDisk = false
	n.sync(len(n.pending))
	c.settle()
	c.tick(2)
	if got, want := n.store.position, leader.store.position; got != want {
		t.Errorf("it has applied %v, want %v", got, want)
	}
}

// Ensure that a leader whose disk or store makes no progress asks a member with progress to take over: the cluster does not
// wait for an election timeout.
func TestReplica_tickLeader_handsOverWhenStalled(t *testing.T) {
	for name, stall := range map[string]func(c *cluster, n *node){
		"disk":  func(_ *cluster, n *node) { n.slowDisk = true },
		"store": func(_ *cluster, n *node) { n.holdApply = true },
	} {
		c := newCluster([]memberID{1, 2, 3}, nil, narrow)
		c.elect(1)
		n, term, asked := c.node(1), c.node(1).replica.Term(), memberID(0)
		c.check = func(_ *node, out *raft.Output) {
			for _, m := range append(out.Send, out.SendAfter...) {
				if m.Kind == consensus.MsgTimeoutNow {
					asked = m.To
				}
			}
		}
		stall(c, n)
		for i := range 50 {
			c.propose(1, payload(i))
			c.settle()
		}
		for range 4 * c.opts(1).ElectionTicks {
			if asked == 0 {
				c.tick(1)
			}
		}
		if leader := c.leader(); asked == 0 || leader.id != asked || leader.replica.Term() != term+1 {
			t.Errorf("%s: member %v was asked, and %v leads in term %d after %d", name, asked, leader.id, leader.replica.Term(), term)
		}
	}
}

// Ensure that a slow disk deposes no leader while no other disk is faster.
func TestReplica_Tick_allDisksStalled(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	term := c.node(1).replica.Term()
	for _, n := range c.nodes {
		n.slowDisk = true
	}
	c.propose(1, "a")
	c.settle()
	c.tick(3 * c.opts(1).ElectionTicks)
	if s := c.node(1).replica.Status(); s.Role != raft.Leader || s.Term != term {
		t.Errorf("got %v in term %d, want the leader of term %d", s.Role, s.Term, term)
	}
}
