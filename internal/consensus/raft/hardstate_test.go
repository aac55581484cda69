package raft_test

import "testing"

// Ensure that the commit index is written with the entries after it: a member that starts again applies what it knew.
func TestReplica_persist_commitRidesAlong(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	c.propose(1, "a")
	c.settle()
	n := c.node(1)
	committed := n.replica.Commit()
	if n.disk.hard.Commit >= committed {
		t.Fatalf("the disk knows of commit %d already, written for its own sake", n.disk.hard.Commit)
	}
	c.propose(1, "b")
	n.drain()
	n.sync(len(n.pending))
	if got := n.disk.hard.Commit; got != committed {
		t.Errorf("the disk knows that %d is committed, want %d", got, committed)
	}
}
