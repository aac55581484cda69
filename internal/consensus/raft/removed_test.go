package raft_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that a member which removed the others, as a recovery from quorum loss does, neither follows nor acknowledges a
// leader that they elect among themselves: an acknowledgement would let that one count it.
func TestReplica_receive_removedLeader(t *testing.T) {
	alone := raft.Restored{
		Hard:       consensus.HardState{Term: 9, Vote: 1, Commit: 4},
		Base:       consensus.SnapshotMeta{Position: position{Index: 4, Term: 9}, Config: testConfig([]memberID{1}, nil)},
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
				Kind: kind, From: 2, To: 1, Term: tc.term, Prev: position{Index: 2, Term: 5}, Last: position{Index: 2, Term: 5},
				Match: position{Index: 2, Term: 5}, Commit: 3,
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

// Ensure that a leader which removes itself, with all other voters, hands over although clients write faster than it can send,
// and that the change ends so.
func TestReplica_Step_removedLeaderUnderLoad(t *testing.T) {
	for _, protocol := range []consensus.Protocol{consensus.ProtocolJoint, consensus.ProtocolJointEarly, consensus.ProtocolApply} {
		c := newCluster([]memberID{1, 2, 3}, []memberID{4, 5, 6}, func(o *raft.Options) {
			o.MaxMessageBytes, o.MaxInflightMessages, o.MaxUncommittedBytes = 400, 2, 4000
		})
		c.elect(1)
		c.tick(3)
		request, err := parseRequest(strings.Fields("promote 4 promote 5 promote 6 remove 1 remove 2 remove 3"))
		if err != nil {
			t.Fatal(err)
		}
		request.Protocol = protocol
		c.request(1, request)
		rounds := 0
		for ; c.node(1).replica.Leader() == 1 && rounds < 100; rounds++ {
			for range 40 {
				c.propose(1, strings.Repeat("x", 100))
			}
			c.round()
		}
		if rounds == 100 {
			s := c.node(1).replica.Status()
			t.Errorf("%v: it still leads config %v, and has committed %d of %d", protocol, s.ConfigID, s.Commit, s.LastIndex)
			continue
		}
		c.settle()
		c.tick(3)
		if s := c.node(4).replica.Status(); !s.ConfigSettled || len(s.Config.Voters) != 3 || s.Config.IsJoint() {
			t.Errorf("%v: %d rounds later %v is in force, settled %v", protocol, rounds, s.Config.Voters, s.ConfigSettled)
		}
	}
}

// Ensure that the leader that still replicates to a removed member takes the requests made of it just before, on either path:
// the member learns under which configuration to ask again.
func TestReplica_receive_lastProposals(t *testing.T) {
	for _, kind := range []consensus.MessageKind{consensus.MsgPropose, consensus.MsgFastPropose} {
		c := newCluster([]memberID{1, 2, 3}, nil, nil)
		c.elect(1)
		c.tick(3)
		before := c.node(3).replica.InForce().ID
		request, err := parseRequest([]string{"remove", "3"})
		if err != nil {
			t.Fatal(err)
		}
		c.request(1, request)
		c.settle()
		leader := c.node(1).replica
		out := leader.Step(raft.Receive{Message: message{
			Kind: kind, From: 3, To: 1, Term: leader.Term(), Config: before,
			Proposals: []consensus.Proposal{{Kind: consensus.EntryCommand, Payload: []byte("x")}},
		}})
		if len(out.Send) != 1 || out.Send[0].Kind != consensus.MsgProposeReply || len(out.Send[0].Refusals) != 1 ||
			out.Send[0].Refusals[0].Reason != consensus.ReasonStaleConfig {
			t.Errorf("%v: got %+v, want a refusal for the configuration", kind, out.Send)
		}
	}
}

// round lets a tick pass in which every message takes one hop.
func (c *cluster) round() {
	for _, n := range c.nodes {
		n.drain()
	}
	net := c.net
	c.net = nil
	for i := range net {
		c.deliver(net[i])
	}
	for _, n := range c.nodes {
		n.step(raft.Tick{})
	}
}
