package raft_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that a leader refuses a command that its build does not know, on each road from another member to the log: an entry with it would stop
// every member, again at each start. The commands beside it are taken.
func TestReplica_Propose_unreadable(t *testing.T) {
	unreadable := func(payload []byte) bool { return strings.HasPrefix(string(payload), "?") }
	for name, fast := range map[string]bool{"forwarded": false, "fast": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) {
				o.Readable = func(payload []byte) bool { return !unreadable(payload) }
				o.Fast.Footprint = func(payload []byte) consensus.Footprint {
					if unreadable(payload) {
						return consensus.Footprint{Barrier: true}
					}
					return footprintOf(payload)
				}
			})
			c.elect(1)
			c.tick(3)
			for _, command := range []string{"a=before", "?", "b=after"} {
				if fast {
					c.proposeFast(2, command)
				} else {
					c.propose(2, command)
				}
			}
			c.settle()
			c.tick(3)
			if got := c.node(2).refusals; len(got) != 1 || got[0].Reason != consensus.ReasonBadRequest {
				t.Errorf("refused: %v, want one bad request", got)
			}
			for _, id := range []memberID{1, 2, 3} {
				if got := strings.Join(c.node(id).store.commands, " "); got != "a=before b=after" {
					t.Errorf("member %v has applied %q", id, got)
				}
			}
		})
	}
}

// Ensure that a new leader logs no command of a record in a vote that its build does not know, also if all other voters send it.
func TestReplica_handleVoteReply_unreadable(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3, 4, 5}, nil, func(o *raft.Options) {
		o.Readable = func(payload []byte) bool { return !strings.HasPrefix(string(payload), "?") }
		o.Fast.Footprint = footprintOf
	})
	c.elect(1)
	c.tick(3)
	id := consensus.ProposalID{Session: consensus.SessionID{Member: 2, Number: 1}, Sequence: 99}
	votes := 0
	c.node(1).step(raft.Transfer{To: 3})
	c.deliverOnly(func(m *message) bool {
		if m.Kind != consensus.MsgVoteReply || m.Reject {
			return true
		}
		votes++
		for i, payload := range []string{"?", "k=known"} {
			id.Sequence += uint64(i)
			m.Records = append(m.Records, consensus.Record{Attempt: consensus.AttemptOf(id, uint64(1000+i), []byte(payload)),
				Term: m.Term, Config: c.node(3).replica.Status().ConfigID, Payload: []byte(payload)})
		}
		id.Sequence = 99
		return true
	})
	c.elect(3)
	c.tick(3)
	if got := strings.Join(c.node(1).store.commands, " "); votes == 0 || got != "k=known" {
		t.Errorf("%d votes, and member 1 has applied %q, want k=known alone", votes, got)
	}
}
