package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that messages of a native client are no sign of life of a member whose name it took: a leader that hears from no other
// member must notice that it is alone.
func TestReplica_Receive_clientInAMembersName(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) { o.CheckQuorum = true })
	c.elect(1)
	replica := c.node(1).replica
	term := replica.Term()
	client := []consensus.Proposal{{
		ID:   consensus.ProposalID{Session: consensus.ClientSession(2, 1), Sequence: 1},
		Kind: consensus.EntryCommand, Payload: []byte("x"),
	}}
	for range 3 * c.opts(1).ElectionTicks {
		for _, kind := range []consensus.MessageKind{consensus.MsgRecord, consensus.MsgFastPropose} {
			replica.Step(raft.Receive{Message: consensus.Message{Kind: kind, From: 2, To: 1, Term: term, Proposals: client}})
		}
		replica.Step(raft.Tick{})
	}
	if s := replica.Status(); s.Role == raft.Leader {
		t.Errorf("it still leads term %d, and hears nobody but a client", s.Term)
	}
}
