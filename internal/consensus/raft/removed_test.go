package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that a member which removed the others, as a recovery from quorum loss does, neither follows nor acknowledges a
// leader that they elect among themselves: an acknowledgement would let that one count it.
func TestReplica_receive_removedLeader(t *testing.T) {
	alone := raft.Restored{
		Hard:       consensus.HardState{Term: 9, Vote: 1, Commit: 4},
		Base:       consensus.SnapshotMeta{Mark: mark{Index: 4, Term: 9}, Config: testConfig([]memberID{1}, nil)},
		Applied:    4,
		Tombstones: []memberID{2, 3},
	}
	for _, tc := range []struct {
		name string
		term consensus.Term
	}{
		{"of an old term", 6}, {"of the term of now", 10}, {"of a newer term", 50},
	} {
		r, err := raft.New(raft.Defaults(1), alone)
		if err != nil {
			t.Fatal(err)
		}
		out := r.Step(raft.Tick{})
		r.Step(raft.Persisted{Seq: out.Seq})
		for _, kind := range []consensus.MessageKind{
			consensus.MsgAppend, consensus.MsgHeartbeat, consensus.MsgSnapshotOffer, consensus.MsgVote, consensus.MsgPreVote,
		} {
			out = r.Step(raft.Receive{Message: message{
				Kind: kind, From: 2, To: 1, Term: tc.term, Mark: mark{Index: 2, Term: 5}, Commit: 3,
				Entries: nil,
			}})
			if r.Leader() != 1 || r.Term() != 10 {
				t.Fatalf("%s, %v: leader %v of term %d, want 1 of 10", tc.name, kind, r.Leader(), r.Term())
			}
			if len(out.Send) != 1 || out.Send[0].Kind != consensus.MsgRemoved || out.Send[0].To != 2 {
				t.Errorf("%s, %v: got %v, want only the word that it was removed", tc.name, kind, out.Send)
			}
		}
	}
}
