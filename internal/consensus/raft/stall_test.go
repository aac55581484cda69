package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that a leader whose disk hangs makes room for a member whose disk does not: it could go on to commit by the
// others' disks, but not apply, renew leases, or forget what it queues for its own.
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

// Ensure that a disk that is slow without anybody being faster costs no leader.
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
