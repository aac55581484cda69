package raft_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// laterCommit brings member 2, which follows leader 3 of term 3, to learn a commit of leader 1 of term 4, by the question of a
// candidate, and without that term. The logs of leader 3 and of member 2 differ below that index: entries 3 and 4 are Y1 and Y2
// of term 2 on member 2, and W, recovered, and the no-op of term 3 on its leader. If asks, a read is under way at member 2
// meanwhile, and all members have answered its question but the leaders of the two terms before.
func laterCommit(t *testing.T, faults rules.Set, asks bool) *story {
	c := newCluster([]memberID{1, 2, 3, 4, 5}, nil, func(o *raft.Options) {
		o.ElectionTicks, o.PreVote, o.CheckQuorum, o.StrictReconfig = 1000, true, false, false
		o.MaxMessageBytes = 1
		o.Fast.Footprint, o.Dropped = footprintOf, faults
	})
	c.lossy, c.trace = true, &strings.Builder{}
	x := &story{cluster: c, laws: newFastLaws(c)}
	c.elect(1)
	x.give(1, 2, 3, 4, 5)

	x.slow("Y1", "c", 1) // entries 3 and 4 reach member 2 alone
	x.slow("Y2", "d", 1)
	x.giveUpTo(4, false, 1, 2)
	for at, name := range []string{"A", "B", "C", "D", "E", "F"} { // so that all hold W at its revision in the log
		x.fast(name, []string{"a", "b"}[at%2], 2, memberID(3+at/2))
	}
	x.fast("W", "e", 2, 1, 3, 4, 5)
	if len(x.laws.wins) != 1 {
		t.Fatalf("W is not decided:\n%s", x.trace)
	}
	x.leads(3, 4, 5)
	x.tell(3, 2)
	if asks {
		x.laws.ask(x.node(2), 9)
		x.node(2).step(raft.Read{IDs: []uint64{9}, Spread: true})
		for range 3 {
			for _, m := range x.take(isRead) {
				if m.Kind != consensus.MsgReadReply && m.From != 1 && m.To != 1 {
					x.deliver(m)
				}
			}
		}
	}
	x.net = nil
	x.give(1, 5)
	x.leads(1, 4, 5)
	four := x.node(4)
	four.holdApply = true
	x.give(1, 4, 5)
	four.apply(2)
	four.flush()
	four.crash() // of commits it knows only those that its store has applied: up to entry 4
	four.holdApply = false
	four.start()
	four.step(raft.Campaign{})
	for _, m := range x.take(func(m *message) bool { return m.Kind == consensus.MsgPreVote && m.To == 2 }) {
		x.deliver(m)
	}
	for x.node(2).drain() {
	}
	x.net = nil
	if s := x.node(2).replica.Status(); s.Term != 3 || s.Leader != 3 || s.Commit != 4 {
		t.Fatalf("member 2 follows %v at term %d and knows of commits up to %d:\n%s", s.Leader, s.Term, s.Commit, x.trace)
	}
	return x
}

// Ensure that a read never takes the committed entries that a member knows, of a later term, for the beginning of its leader's
// log: that leader may lead no more, and an answered write may be missing up to the index that it named.
func TestReplica_Read_commitOfALaterTerm(t *testing.T) {
	for _, broken := range []bool{false, true} {
		x := laterCommit(t, rules.Set{rules.ReadLeaderIndex: broken}, true)
		if stale := strings.HasPrefix(x.laws.broken, "L6"); stale != broken || (x.laws.broken != "") != broken {
			t.Errorf("the leader's index is used: %t; broken %q, reads answered %v\n%s", broken, x.laws.broken, x.node(2).reads, x.trace)
		}
	}
}

// Ensure that entries below the commit index are compared like all others: an append of a leader whose log differs there is
// refused, counted, and reported once, and none of it is acknowledged.
func TestReplica_Receive_appendBelowCommit(t *testing.T) {
	for _, broken := range []bool{false, true} {
		x := laterCommit(t, rules.Set{rules.SkipBelowCommit: broken}, false)
		x.slow("X", "f", 3) // entry 5 of leader 3
		three, two := x.node(3), x.node(2)
		s := three.replica.Status()
		entries := slices.DeleteFunc(slices.Clone(three.log), func(e entry) bool { return e.Index <= 2 })
		prev, _ := three.at(2)
		for range 2 {
			x.deliver(message{
				Kind: consensus.MsgAppend, From: 3, To: 2, Term: s.Term, Prev: prev, Config: s.ConfigID, Commit: 2, Entries: entries,
			})
			for two.drain() {
			}
		}
		acknowledged := len(x.take(func(m *message) bool { return m.Kind == consensus.MsgAppendReply && !m.Reject && m.Match.Index > 2 })) > 0
		if acknowledged != broken {
			t.Errorf("compared below the commit index: %t; acknowledged: %t\n%s\n%s", !broken, acknowledged, three.drawn(), two.drawn())
		}
		conflicts := 0
		for _, e := range two.events {
			if e, ok := e.(raft.LogConflict); ok {
				conflicts++
				if e != (raft.LogConflict{Leader: 3, Term: 3, At: position{Index: 3, Term: 3}, Own: 2}) {
					t.Errorf("told %v", e)
				}
			}
		}
		if count := two.replica.Counts().Refused[filter.BelowCommit]; !broken && (count != 2 || conflicts != 1) {
			t.Errorf("refused %d, told %d times", count, conflicts)
		}
		if broken {
			x.laws.matching(x.cluster)
			if !strings.HasPrefix(x.laws.broken, "log matching") {
				t.Errorf("the laws say %q:\n%s\n%s", x.laws.broken, three.drawn(), two.drawn())
			}
		}
	}
}

// Ensure that a leader counts an acknowledgement only if its own log has the entry that it names.
func TestReplica_Receive_ackOfAForeignLog(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	c.isolate(1, true)
	c.propose(1, "a")
	c.settle()
	lead := c.node(1)
	s := lead.replica.Status()
	for _, match := range []position{{Index: s.LastIndex, Term: s.Term - 1}, {Index: s.LastIndex + 1, Term: s.Term}, {Index: 1 << 62, Term: 1}} {
		for _, id := range []memberID{2, 3} {
			lead.step(raft.Receive{Message: message{Kind: consensus.MsgAppendReply, From: id, To: 1, Term: s.Term, Match: match}})
		}
	}
	if after := lead.replica.Status(); after.Commit != s.Commit || lead.replica.Counts().Refused[filter.ForeignLog] != 6 {
		t.Errorf("committed up to %d, before %d; refused %v", after.Commit, s.Commit, lead.replica.Counts().Refused)
	}
	lead.step(raft.Receive{Message: message{
		Kind: consensus.MsgAppendReply, From: 2, To: 1, Term: s.Term, Match: position{Index: s.LastIndex, Term: s.Term},
	}})
	if after := lead.replica.Status(); after.Commit != s.LastIndex {
		t.Errorf("a true acknowledgement: committed up to %d, want %d", after.Commit, s.LastIndex)
	}
}

// Ensure that a leader that probes below a follower's log continues from the base of that log, if its own log has it, and
// counts nothing otherwise.
func TestReplica_Receive_appendBelowBase(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	c.propose(1, "a", "b", "c", "d")
	c.settle()
	c.tick(2)
	two := c.node(2)
	two.compact(5)
	s := c.node(1).replica.Status()
	two.step(raft.Receive{Message: message{
		Kind: consensus.MsgAppend, From: 1, To: 2, Term: s.Term, Prev: position{Index: 2, Term: s.Term}, Commit: 2, Config: s.ConfigID,
	}})
	for two.drain() {
	}
	want := position{Index: 5, Term: s.Term}
	if len(c.net) != 1 || !c.net[0].Reject || c.net[0].Hint != want || (c.net[0].Match != position{}) {
		t.Fatalf("member 2 answers %+v", c.net)
	}
	answer := c.net[0]
	for _, foreign := range []bool{true, false} {
		lead := newCluster([]memberID{1, 2, 3}, nil, nil)
		lead.elect(1)
		lead.isolate(1, true)
		lead.propose(1, "a", "b", "c", "d")
		lead.settle()
		m := answer
		if foreign {
			m.Hint.Term--
		}
		lead.node(1).step(raft.Receive{Message: m})
		got := lead.node(1).replica.Status().Progress[0].Match
		if foreign && got >= 5 || !foreign && got != 5 {
			t.Errorf("hint %v: match %d", m.Hint, got)
		}
	}
}
