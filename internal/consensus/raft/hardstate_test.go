package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that a vote of an earlier term than that of the snapshot which the store holds is none of that term: the hard state was not
// written again after the installation.
func TestNew_voteOfEarlierTerm(t *testing.T) {
	for _, row := range []struct {
		saved  consensus.Term
		grants bool
	}{{4, false}, {2, true}} {
		base := consensus.Founding(testConfig([]memberID{1, 2, 3}, nil))
		base.Position = position{Index: 5, Term: 4}
		r, err := raft.New(raft.Defaults(1), raft.Restored{Hard: consensus.HardState{Term: row.saved, Vote: 3}, Base: base, Applied: 5})
		if err != nil {
			t.Fatal(err)
		}
		out := r.Step(raft.Receive{Message: message{
			Kind: consensus.MsgVote, From: 2, To: 1, Term: 4, Last: position{Index: 9, Term: 4}, Force: true,
		}})
		replies := append(out.Send, out.SendAfter...)
		if len(replies) != 1 || replies[0].Reject == row.grants {
			t.Errorf("a vote of term %d was saved; the answers in term 4 are %+v", row.saved, replies)
		}
	}
}

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
