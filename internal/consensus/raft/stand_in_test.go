package raft_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// newcomerAhead is a cluster of voters 1, 2 and 3 with learner 7. Leader 1 has logged a joint configuration that adds 7, which
// no other member has; leader 3 after it has logged entries that only 7 has, and is lost: 1 needs the vote of 7, and no other
// member can win against the log of 1.
func newcomerAhead(t *testing.T, change func(*raft.Options)) *cluster {
	c := newCluster([]memberID{1, 2, 3}, []memberID{7}, change)
	c.elect(1)
	c.tick(3)
	c.isolate(1, true)
	request, err := parseRequest(strings.Fields("promote 7"))
	if err != nil {
		t.Fatal(err)
	}
	request.Protocol = consensus.ProtocolJointEarly
	c.request(1, request)
	c.settle()
	if s := c.node(1).replica.Status(); !s.Config.IsJoint() || s.ConfigCommitted {
		t.Fatalf("leader 1 has configuration %v, committed %v", s.Config, s.ConfigCommitted)
	}
	for _, id := range []memberID{2, 3} {
		c.node(id).step(raft.Unreachable{Member: 1})
	}
	c.node(3).step(raft.Campaign{})
	for i := 0; c.node(3).replica.Status().Role != raft.Leader; i++ {
		if i == 100 {
			t.Fatal("member 3 is not elected")
		}
		c.deliverFirst()
	}
	c.blocked[[2]memberID{3, 2}] = true
	c.propose(3, "a", "b")
	c.settle()
	if last, behind := c.node(7).replica.Status().LastIndex, c.node(2).replica.Status().LastIndex; last <= behind {
		t.Fatalf("learner 7 has %d entries, and voter 2 has %d", last, behind)
	}
	c.isolate(1, false)
	c.isolate(3, true)
	c.node(3).crash()
	return c
}

// Ensure that a newcomer with the better log, which by that log is no voter and whose vote a candidate needs, is elected by the
// voters of its own log, finishes the change, and hands over.
func TestReplica_campaign_newcomerAhead(t *testing.T) {
	c := newcomerAhead(t, nil)
	var led []memberID
	for range 20 * raft.Defaults(1).ElectionTicks {
		c.tick(1, 1, 2, 7)
		if n := c.leader(); n != nil && !slices.Contains(led, n.id) {
			led = append(led, n.id)
		}
	}
	leader := c.leader()
	if leader == nil || leader.id == 7 || !slices.ContainsFunc(c.node(7).events, func(e raft.Event) bool {
		_, led := e.(raft.BecameLeader)
		return led
	}) {
		t.Fatalf("%v have led", led)
	}
	before := leader.replica.Status().Commit
	c.propose(leader.id, "c")
	c.settle()
	for _, id := range []memberID{1, 2, 7} {
		s := c.node(id).replica.Status()
		if s.Commit <= before || s.Config.IsJoint() || s.Config.IsVoter(7) {
			t.Errorf("member %v has committed %d, %d before, of configuration %v", id, s.Commit, before, s.Config)
		}
	}
}

// Ensure that such a newcomer waits, like all learners, where no candidate needs it, where it would raise the term at once, and
// when a candidate needed it long ago.
func TestReplica_campaign_newcomerWaits(t *testing.T) {
	ask := func(c *cluster, from memberID) {
		s := c.node(from).replica.Status()
		c.node(7).step(raft.Receive{Message: message{
			Kind: consensus.MsgPreVote, From: from, To: 7, Term: s.Term + 1, Last: position{Index: 1, Term: 1},
		}})
	}
	stands := func(c *cluster) bool {
		c.node(7).step(raft.Campaign{})
		return c.node(7).replica.Status().Role == raft.PreCandidate
	}
	patience := 5 * raft.Defaults(1).ElectionTicks
	for name, row := range map[string]struct {
		change func(*raft.Options)
		before func(c *cluster)
		want   bool
	}{
		"nobody asks":             {nil, func(*cluster) {}, false},
		"a candidate asks":        {nil, func(c *cluster) { ask(c, 1) }, true},
		"a learner asks":          {nil, func(c *cluster) { ask(c, 7) }, false},
		"it was asked long ago":   {nil, func(c *cluster) { ask(c, 1); c.tick(patience, 7) }, false},
		"there is no inquiry":     {func(o *raft.Options) { o.PreVote = false }, func(c *cluster) { ask(c, 1) }, false},
		"the log is no better":    {nil, func(c *cluster) { askWith(c, position{Index: 1000, Term: 1000}) }, false},
		"a candidate asks a vote": {nil, func(c *cluster) { askVote(c) }, true},
	} {
		c := newcomerAhead(t, row.change)
		c.isolate(7, true)
		c.tick(3*raft.Defaults(1).ElectionTicks, 7) // it has no leader any more
		row.before(c)
		if got := stands(c); got != row.want {
			t.Errorf("%s: it stands: %v", name, got)
		}
	}
}

func askWith(c *cluster, last position) {
	term := c.node(7).replica.Status().Term
	c.node(7).step(raft.Receive{Message: message{Kind: consensus.MsgPreVote, From: 1, To: 7, Term: term + 1, Last: last}})
}

func askVote(c *cluster) {
	term := c.node(7).replica.Status().Term
	c.node(7).step(raft.Receive{Message: message{
		Kind: consensus.MsgVote, From: 1, To: 7, Term: term + 1, Last: position{Index: 1, Term: 1},
	}})
}
