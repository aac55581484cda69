package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that what a follower forwards is cut like appends are: after a change of leader everything unanswered goes out
// at once, and a single message of that size would be dropped by the network, again and again.
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

// Ensure that a follower asks other voters than the leader for a read only where it is told to: they would answer for nothing.
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

// Ensure that what waits for the leader is refused if the leader is lost within the same Step, on either path, so that its
// callers hear of it at once.
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

// Ensure that a state machine that says that it has applied what it was not given is not believed.
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
