package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that a follower cuts forwarded proposals as appends are cut: after a change of leader it sends all unanswered ones at
// once, and the network would drop a single message of that size, again and again.
func TestReplica_Propose_followerCutsMessages(t *testing.T) {
	const most = 1000
	c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) { o.MaxMessageBytes = most })
	c.elect(1)
	sent := 0
	c.check = func(n *node, out *raft.Output) {
		for _, m := range out.Send {
			if m.Kind != consensus.MsgPropose {
				continue
			}
			bytes := 0
			for _, p := range m.Proposals {
				bytes += len(p.Payload)
			}
			if bytes > most && len(m.Proposals) > 1 {
				t.Errorf("%d proposals of %d bytes in one message", len(m.Proposals), bytes)
			}
			sent += len(m.Proposals)
		}
	}
	commands := make([]string, 20)
	for i := range commands {
		commands[i] = string(make([]byte, 100*i))
	}
	c.propose(2, commands...)
	c.settle()
	c.tick(1)
	if got := len(c.node(2).store.commands); sent != len(commands) || got != len(commands) {
		t.Fatalf("%d forwarded, %d applied, want %d", sent, got, len(commands))
	}
	for i, command := range c.node(2).store.commands {
		if command != commands[i] {
			t.Fatalf("command %d has %d bytes, want %d: the order changed", i, len(command), len(commands[i]))
		}
	}
}

// Ensure that a follower asks other voters than the leader for a read only with Spread: their answers would be useless.
func TestReplica_Read_spread(t *testing.T) {
	for _, spread := range []bool{false, true} {
		c := newCluster([]memberID{1, 2, 3}, nil, nil)
		c.elect(1)
		asked := map[consensus.MessageKind]int{}
		c.check = func(_ *node, out *raft.Output) {
			for i := range out.Send {
				asked[out.Send[i].Kind]++
			}
		}
		c.node(2).step(raft.Read{IDs: []uint64{7}, Spread: spread})
		if (asked[consensus.MsgLogQuery] > 0) != spread || asked[consensus.MsgRead] != 1 {
			t.Errorf("spread: %t; sent by kind: %v", spread, asked)
		}
	}
}

// Ensure that requests for the leader are refused if the leader is lost within the same Step, on either path, so that their
// callers learn of it at once.
func TestReplica_Propose_leaderLostMeanwhile(t *testing.T) {
	for _, fast := range []bool{false, true} {
		c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) {
			o.PreVote, o.CheckQuorum = false, false
			o.Fast.Footprint = footprintOf
		})
		c.elect(1)
		c.tick(1)
		n := c.node(2)
		var refused []consensus.Refusal
		c.check = func(at *node, out *raft.Output) {
			if at == n {
				refused = append(refused, out.Refusals...)
			}
		}
		p := proposalOf(1, "a=x")
		vote := message{Kind: consensus.MsgVote, From: 3, To: 2, Term: n.replica.Term() + 1, Config: n.replica.InForce().ID}
		n.step(raft.Propose{Proposals: []consensus.Proposal{p}, Fast: fast}, raft.Receive{Message: vote})
		if len(refused) != 1 || refused[0].ID != p.ID || refused[0].Reason != consensus.ReasonNoLeader {
			t.Errorf("fast %t: refused %+v, want the proposal, since there is no leader", fast, refused)
		}
	}
}

// Ensure that a replica does not believe a state machine that claims to have applied entries that it was not given.
func TestReplica_Step_appliedTooMuch(t *testing.T) {
	c := newCluster([]memberID{1}, nil, nil)
	c.elect(1)
	c.settle()
	n := c.node(1)
	before := n.replica.Status().Applied
	n.step(raft.Applied{Index: before + 7})
	if got := n.replica.Status().Applied; got != before {
		t.Errorf("applied %d, want %d", got, before)
	}
}
