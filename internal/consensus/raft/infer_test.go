package raft_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// deliverOnly delivers messages until none is under way; those that do not pass are lost.
func (c *cluster) deliverOnly(pass func(m *message) bool) {
	for range 2000 {
		for _, n := range c.nodes {
			n.drain()
		}
		if len(c.net) == 0 {
			return
		}
		m := c.net[0]
		c.net = c.net[1:]
		if pass(&m) {
			c.deliver(m)
		}
	}
}

// Ensure that entries of earlier terms are not inferred. This is figure 8 of the Raft paper: an entry of term 2 that member 2
// proposed reaches its disk under the leader of term 4, and is then overwritten by one of term 3. With the rule switched off,
// member 2 takes it for committed, and a law breaks.
func TestReplica_Step_inferredOldTerm(t *testing.T) {
	for _, fault := range []bool{false, true} {
		c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) {
			o.MaxMessageBytes, o.MaxInflightMessages = 1, 1
			o.Dropped[rules.InferOldTerm] = fault
		})
		c.infer = true
		l := newLaws()
		l.watch(c)
		c.elect(1)
		c.propose(2, "a")
		c.deliverOnly(func(m *message) bool { return m.Kind == consensus.MsgPropose }) // 3.2 on member 1 alone
		c.node(2).step(raft.Unreachable{Member: 1})
		c.node(3).step(raft.Unreachable{Member: 1})
		c.node(3).step(raft.Campaign{})
		c.deliverOnly(func(m *message) bool { // 3.3 on member 3 alone
			return m.From != 1 && m.To != 1 && m.Kind != consensus.MsgAppend
		})
		c.node(1).crash()
		c.node(1).start()
		c.node(2).step(raft.Unreachable{Member: 3})
		newer := func(m *message) bool { return len(m.Entries) > 0 && m.Entries[0].Term > 2 }
		for i := 0; c.node(1).replica.Status().Role != raft.Leader; i++ {
			if i == 40 {
				t.Fatal("member 1 is not elected again")
			}
			c.node(1).step(raft.Campaign{})
			c.deliverOnly(func(m *message) bool {
				return m.From != 3 && m.To != 3 && !(newer(m) && c.node(2).replica.Status().LastIndex >= 3)
			})
		}
		if s := c.node(2).replica.Status(); s.LastIndex != 3 || s.LastTerm != 2 || (s.Commit == 3) != fault {
			t.Errorf("fault %t: member 2 holds the log up to %d.%d, committed up to %d", fault, s.LastIndex, s.LastTerm, s.Commit)
		}
		c.node(1).crash()
		overwrite(c, l)
		if broken := strings.Contains(l.broken, "leader completeness"); broken != fault {
			t.Errorf("fault %t: broken %q", fault, l.broken)
		}
	}
}

// overwrite lets member 3 lead; with a law broken it may stop the test's members.
func overwrite(c *cluster, l *laws) {
	defer func() {
		if p := recover(); p != nil && l.broken == "" {
			l.breach("panic: %v", p)
		}
	}()
	for range 60 {
		if s := c.node(3).replica.Status(); s.Role == raft.Leader && s.Term > 4 {
			break
		}
		c.node(2).step(raft.Unreachable{Member: 1})
		c.tick(1, 3)
	}
	c.propose(3, "b")
	c.settle()
}

// Ensure that a voter's answer to a question of an earlier life of the reader, whose ids went further, counts for nothing.
func TestReplica_Step_logEndOfAnEarlierLife(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3, 4, 5}, nil, nil)
	c.infer = true
	l := newLaws()
	l.watch(c)
	c.elect(1)
	for _, id := range []memberID{3, 4, 5} {
		c.cut(id, 1)
		c.cut(id, 2)
		c.node(2).step(raft.Receive{Message: consensus.Message{
			Kind: consensus.MsgLogQueryReply, From: id, To: 2, Term: 2, LogQuery: consensus.LogQuery{Query: 1 << 40},
		}})
	}
	l.asked[[2]uint64{2, 9}] = l.highest
	c.node(2).step(raft.Read{IDs: []uint64{9}, Spread: true})
	c.settle()
	if l.reads != 0 {
		t.Error("the read is answered by voters that were asked in another life")
	}
}

// Ensure that the end of a log counts for a read if a voter reported it after the question, under the configuration that the
// reader counts by, and only if all writes that may have been answered are in that log.
func TestReplica_Step_logEndOfSomebody(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(m *message)
		before func(c *cluster)
		taken  bool
	}{
		{"as it should be", func(*message) {}, nil, true},
		{"in a later term", func(m *message) { m.Term += 3 }, nil, true},
		{"of a non-member", func(m *message) { m.From = 9 }, nil, false},
		{"under another configuration", func(m *message) { m.Config.Index++ }, nil, false},
		{"of an earlier question", func(m *message) { m.Query-- }, nil, false},
		{"of a question to come", func(m *message) { m.Query++ }, nil, false},
		{"with records", func(m *message) { m.Unlogged = true }, nil, false},
		{"not committed here", func(m *message) { m.Last.Index++ }, nil, false},
		{"while the configuration changes", func(m *message) { m.Config = consensus.ConfigID{Index: 3, Term: m.Term} },
			func(c *cluster) {
				c.slow(1)
				c.change(1, consensus.ChangeAddLearner, testMember(9))
				c.settle()
			}, false},
	} {
		c := newCluster([]memberID{1, 2, 3}, nil, nil)
		l := newLaws()
		l.watch(c)
		c.elect(1)
		if row.before != nil {
			row.before(c)
		}
		c.cut(1, 2)
		c.cut(2, 3)
		l.asked[[2]uint64{2, 7}] = l.highest
		c.node(2).step(raft.Read{IDs: []uint64{7}, Spread: true})
		c.settle()
		s := c.node(2).replica.Status()
		m := message{
			Kind: consensus.MsgLogQueryReply, From: 3, To: 2, Term: s.Term, Config: s.ConfigID, LogQuery: consensus.LogQuery{Query: 7}, Last: position{Index: 2, Term: 2},
		}
		row.change(&m)
		c.node(2).step(raft.Receive{Message: m})
		c.settle()
		if taken := l.reads == 1; taken != row.taken || l.broken != "" {
			t.Errorf("%s: taken %t, broken %q", row.name, taken, l.broken)
		}
	}
}

// slow makes all disks slow but that of member id: entries are durable there, and nothing commits.
func (c *cluster) slow(id memberID) {
	for _, n := range c.nodes {
		n.slowDisk = n.id != id
	}
}

// Ensure that a member's entries of the log of an earlier term's leader do not count in this term.
func TestReplica_Step_holdingsOfAnEarlierTerm(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.infer = true
	l := newLaws()
	l.watch(c)
	c.elect(1)
	s := c.node(2).replica.Status()
	c.node(2).step(raft.Receive{Message: message{
		Kind: consensus.MsgAcknowledged, From: 1, To: 2, Term: s.Term, Config: s.ConfigID, Match: consensus.Position{Index: 50},
	}})
	c.elect(3)
	c.cut(1, 2)
	c.cut(1, 3)
	c.node(3).slowDisk = true
	before := c.node(2).replica.Status().Commit
	c.propose(2, "a")
	c.settle()
	if s := c.node(2).replica.Status(); s.Commit != before || s.LastIndex == before || l.broken != "" {
		t.Errorf("committed up to %d of %d, %d before; broken %q", s.Commit, s.LastIndex, before, l.broken)
	}
}
