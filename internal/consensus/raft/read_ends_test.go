package raft_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// readsAt makes a member read, under the laws.
func readsAt(c *cluster, l *laws, id memberID, name uint64) {
	l.asked[[2]uint64{uint64(id), name}] = l.highest
	c.node(id).step(raft.Read{IDs: []uint64{name}})
}

// Ensure that reads through any member are answered while all disks are busy with writes that were reported to no client, and
// that they show the writes answered before.
func TestReplica_Read_slowDisks(t *testing.T) {
	for _, dead := range []bool{false, true} {
		c := newCluster([]memberID{1, 2, 3}, nil, nil)
		l := newLaws()
		l.watch(c)
		c.elect(1)
		c.propose(1, "a")
		c.settle()
		before := c.node(1).replica.Status().Commit
		if dead {
			c.isolate(3, true)
			c.propose(1, "b")
			c.settle()
			before = c.node(1).replica.Status().Commit
			c.node(1).step(raft.Unreachable{Member: 3})
			c.settle()
		}
		for _, n := range c.nodes {
			n.slowDisk = true
		}
		c.propose(1, "c", "d")
		c.propose(2, "e")
		c.settle()
		for name, id := range []memberID{1, 2} {
			readsAt(c, l, id, uint64(name+1))
		}
		c.settle()
		if s := c.node(1).replica.Status(); s.Commit != before || s.LastIndex != before+3 {
			t.Fatalf("committed up to %d of %d, want %d", s.Commit, s.LastIndex, before)
		}
		if l.reads != 2 || l.broken != "" {
			t.Errorf("dead member: %t; %d of two reads are answered, broken %q", dead, l.reads, l.broken)
		}
	}
}

// inferredAlone brings member 3 to find its own entry committed, by its disk and the leader's report, while neither the leader
// nor member 2 knows it.
func inferredAlone(t *testing.T, learners []memberID, faults rules.Set) (*cluster, *laws) {
	t.Helper()
	c := newCluster([]memberID{1, 2, 3}, learners, func(o *raft.Options) { o.Dropped = faults })
	c.infer, c.trace = true, &strings.Builder{}
	l := newLaws()
	l.watch(c)
	c.elect(1)
	c.propose(1, "a")
	c.settle()
	readsAt(c, l, 1, 1) // all voters report the durable ends of their logs
	c.settle()
	before := c.node(1).replica.Status().Commit
	c.propose(3, "b")
	c.deliverOnly(func(m *message) bool {
		return m.Kind == consensus.MsgPropose || m.From == 1 && m.To == 3 && m.Kind != consensus.MsgReadReply
	})
	if one, three := c.node(1).replica.Commit(), c.node(3).replica.Commit(); one != before || three != before+1 || l.broken != "" {
		t.Fatalf("the leader knows of commits up to %d, member 3 up to %d, want %d and one more; broken %q\n%s",
			one, three, before, l.broken, c.trace)
	}
	return c, l
}

// Ensure that a voter that has not answered since a read came counts as if it had all entries sent to it. Without the rule a
// read of the leader misses a write that member 3 has answered meanwhile.
func TestReplica_Read_oldEnds(t *testing.T) {
	for _, fault := range []bool{false, true} {
		c, l := inferredAlone(t, nil, rules.Set{rules.ReadOldEnds: fault})
		readsAt(c, l, 1, 2)
		c.deliverOnly(func(m *message) bool { return m.From != 3 && m.To != 3 && len(m.Entries) == 0 })
		if stale := strings.Contains(l.broken, "read"); stale != fault || (l.reads == 2) != fault {
			t.Errorf("read-old-ends %t: %d reads, broken %q\n%s", fault, l.reads, l.broken, c.trace)
		}
	}
}

// Ensure that a change under way keeps a read from being counted by the configuration in force at the leader: member 3 counts
// by the one before. Without the rule the read misses a write that it answered.
func TestReplica_Read_whileChanging(t *testing.T) {
	for _, fault := range []bool{false, true} {
		c, l := inferredAlone(t, []memberID{4}, rules.Set{rules.ReadWhileChanging: fault})
		c.change(1, consensus.ChangePromote, testMember(4))
		within := func(m *message) bool { return m.From != 3 && m.To != 3 && len(m.Entries) == 0 }
		c.deliverOnly(within)
		if s := c.node(1).replica.Status(); !slices.Contains(s.Config.Voters, 4) || s.ConfigCommitted {
			t.Fatalf("no change is under way: %+v\n%s", s, c.trace)
		}
		readsAt(c, l, 1, 2)
		c.deliverOnly(within)
		if stale := strings.Contains(l.broken, "read"); stale != fault || (l.reads == 2) != fault {
			t.Errorf("read-while-changing %t: %d reads, broken %q\n%s", fault, l.reads, l.broken, c.trace)
		}
	}
}

// Ensure that a voter which reports less on its disk than it acknowledged before does not lower the index of a read: it has
// lost entries that others may have counted. Without the rule the read misses a write that member 2 may have answered.
func TestReplica_Read_lostEnd(t *testing.T) {
	for _, row := range []struct{ lost, fault, answered bool }{{}, {lost: true}, {lost: true, fault: true, answered: true}} {
		c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) { o.Dropped[rules.TrustDenial] = row.fault })
		c.elect(1)
		c.propose(1, "a")
		c.settle()
		leader := c.node(1)
		leader.slowDisk = true
		c.propose(1, "b")
		c.deliverOnly(func(m *message) bool { return m.From == 3 || m.To == 3 })
		s := leader.replica.Status()
		leader.step(raft.Read{IDs: []uint64{1}})
		echo := message{Kind: consensus.MsgHeartbeatReply, From: 3, To: 1, Term: s.Term, Durable: s.LastIndex}
		for _, m := range c.net {
			echo.Round = max(echo.Round, m.Round)
		}
		if row.lost {
			echo.Durable, echo.Match = s.Commit, position{Index: s.Commit, Term: s.Term}
		}
		c.net = nil
		leader.step(raft.Receive{Message: echo})
		if answered := len(leader.reads) > 0; s.Commit == s.LastIndex || echo.Round == 0 || answered != row.answered {
			t.Errorf("%+v: committed up to %d of %d, round %d, answered %v", row, s.Commit, s.LastIndex, echo.Round, leader.reads)
		}
	}
}

// Ensure that a read shows a write that the leader answered before its commit: with the records of the voters the answer
// decides, and no voter's log has the entry yet. Without the rule the read misses the write.
func TestReplica_Read_answeredEarly(t *testing.T) {
	for _, fault := range []bool{false, true} {
		c := newFastCluster(func(o *raft.Options) { o.Dropped[rules.ReadForgetsAnswers] = fault })
		decided := 0
		c.check = func(n *node, out *raft.Output) { decided += len(out.Decided) }
		c.proposeFast(3, "a=1")
		noEntries := func(m *message) bool { return len(m.Entries) == 0 }
		c.deliverOnly(noEntries)
		leader := c.node(1)
		if s := leader.replica.Status(); decided != 1 || s.Commit == s.LastIndex {
			t.Fatalf("decided %d; committed up to %d of %d", decided, s.Commit, s.LastIndex)
		}
		leader.step(raft.Read{IDs: []uint64{7}})
		c.deliverOnly(noEntries)
		if answered := len(leader.reads) == 1; answered != fault {
			t.Errorf("read-forgets-answers %t: answered before the entry is committed: %v", fault, leader.reads)
		}
		c.tick(3)
		if last := leader.replica.Status().LastIndex; len(leader.reads) != 1 || (leader.reads[0].Index == last) == fault {
			t.Errorf("read-forgets-answers %t: answered with %v of entries up to %d", fault, leader.reads, last)
		}
	}
}

// Ensure that a leader which steps down refuses the reads of members that wait for it: they would wait until their timeouts.
func TestReplica_leaveLeadership_refusesReads(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3, 4, 5}, nil, nil)
	c.elect(1)
	c.settle()
	n := c.node(1)
	term := n.replica.Term()
	n.step(raft.Receive{Message: message{
		Kind: consensus.MsgRead, From: 2, To: 1, Term: term, Reads: []consensus.ReadIndex{{ID: 7}},
	}}, raft.Read{IDs: []uint64{8}})
	c.net = nil // no member confirms it
	var told []message
	c.check = func(_ *node, out *raft.Output) {
		for _, m := range append(out.Send, out.SendAfter...) {
			if m.Kind == consensus.MsgReadReply {
				told = append(told, m)
			}
		}
	}
	n.step(raft.Receive{Message: message{Kind: consensus.MsgHeartbeat, From: 3, To: 1, Term: term + 1, Round: 1}})
	if len(told) != 1 || told[0].To != 2 || !told[0].Reject || len(told[0].Reads) != 1 || told[0].Reads[0].ID != 7 {
		t.Errorf("the reader was told %+v, want one refusal of its read", told)
	}
	if !slices.Equal(n.failed, []uint64{8}) {
		t.Errorf("of its own reads %v failed, want 8", n.failed)
	}
}
