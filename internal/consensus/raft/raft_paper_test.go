package raft_test

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// single returns one replica of a cluster of three with the given log, and the messages that a Step sends.
func single(t *testing.T, hard consensus.HardState, terms ...consensus.Term) *raft.Replica {
	t.Helper()
	restored := raft.Restored{Hard: hard, Base: consensus.SnapshotMeta{
		Position: position{Index: 1, Term: 1}, Config: testConfig([]memberID{1, 2, 3}, nil), ConfigID: consensus.ConfigID{Index: 1, Term: 1},
	}}
	for i, term := range terms {
		restored.Entries = append(restored.Entries, entry{Index: consensus.Index(i + 2), Term: term, Kind: consensus.EntryNoop})
	}
	r, err := raft.New(raft.Defaults(1), restored)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func receive(m message) raft.Input { return raft.Receive{Message: m} }

func sent(out raft.Output, kind consensus.MessageKind) *message {
	for _, list := range [][]message{out.Send, out.SendAfter} {
		for i := range list {
			if list[i].Kind == kind {
				return &list[i]
			}
		}
	}
	return nil
}

// Raft paper, section 5.1: a server with a stale term adopts the larger one; messages with a stale term are rejected.
func TestReplica_paper51_terms(t *testing.T) {
	r := single(t, consensus.HardState{Term: 3})
	out := r.Step(receive(message{Kind: consensus.MsgAppend, From: 2, To: 1, Term: 5, Prev: position{Index: 1, Term: 1}}))
	if s := r.Status(); s.Term != 5 || s.Leader != 2 || out.Hard == nil || out.Hard.Term != 5 {
		t.Fatalf("term %d, leader %v, hard state %+v", s.Term, s.Leader, out.Hard)
	}
	r.Step(raft.Persisted{Seq: out.Seq})
	out = r.Step(receive(message{Kind: consensus.MsgAppend, From: 3, To: 1, Term: 4, Prev: position{Index: 1, Term: 1}}))
	if m := sent(out, consensus.MsgAppendReply); m == nil || !m.Reject || m.Term != 5 || m.To != 3 {
		t.Fatalf("answer to a stale leader: %+v", m)
	}
	if s := r.Status(); s.Leader != 2 {
		t.Fatalf("a stale leader is followed: %v", s.Leader)
	}
}

// Raft paper, section 5.2: one vote per term, first come first served, durable before it is sent, also after a restart.
func TestReplica_paper52_oneVotePerTerm(t *testing.T) {
	vote := func(from memberID) raft.Input {
		return receive(message{Kind: consensus.MsgVote, From: from, To: 1, Term: 4, Last: position{Index: 1, Term: 1}})
	}
	r := single(t, consensus.HardState{Term: 3})
	out := r.Step(vote(2), vote(3), vote(2))
	if out.Hard == nil || *out.Hard != (consensus.HardState{Term: 4, Vote: 2, Commit: 1}) {
		t.Fatalf("hard state %+v", out.Hard)
	}
	if len(out.SendAfter) != 3 || out.SendAfter[0].Reject || !out.SendAfter[1].Reject || out.SendAfter[2].Reject {
		t.Fatalf("answers %+v", out.SendAfter)
	}
	r = single(t, *out.Hard)
	if m := sent(r.Step(vote(3)), consensus.MsgVoteReply); m == nil || !m.Reject {
		t.Fatalf("after a restart, to another candidate: %+v", m)
	}
}

// Raft paper, section 5.4.1: a vote is refused to a candidate whose log is behind.
func TestReplica_paper541_upToDate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		last   position
		reject bool
	}{
		{"the same log", position{Index: 3, Term: 2}, false},
		{"a longer log of the same term", position{Index: 4, Term: 2}, false},
		{"a shorter log of a later term", position{Index: 2, Term: 3}, false},
		{"a shorter log of the same term", position{Index: 2, Term: 2}, true},
		{"a longer log of an earlier term", position{Index: 9, Term: 1}, true},
	} {
		r := single(t, consensus.HardState{Term: 3}, 2, 2)
		out := r.Step(receive(message{Kind: consensus.MsgVote, From: 2, To: 1, Term: 4, Last: tc.last}))
		if m := sent(out, consensus.MsgVoteReply); m == nil || m.Reject != tc.reject {
			t.Errorf("%s: %+v", tc.name, m)
		}
	}
}

// Raft paper, section 5.3: an old append, delivered late, does not shorten the log; a conflict does.
func TestReplica_paper53_onlyConflictsTruncate(t *testing.T) {
	r := single(t, consensus.HardState{Term: 2}, 2, 2, 2)
	first := position{Index: 1, Term: 1}
	two := entry{Index: 2, Term: 2, Kind: consensus.EntryNoop}
	out := r.Step(receive(message{Kind: consensus.MsgAppend, From: 2, To: 1, Term: 2, Prev: first, Entries: []entry{two}}))
	if s := r.Status(); s.LastIndex != 4 || len(out.Entries) != 0 {
		t.Fatalf("an old append: last %d, persist %v", s.LastIndex, out.Entries)
	}
	three := entry{Index: 3, Term: 3, Kind: consensus.EntryNoop}
	out = r.Step(receive(message{Kind: consensus.MsgAppend, From: 3, To: 1, Term: 3, Prev: first, Entries: []entry{two, three}}))
	if s := r.Status(); s.LastIndex != 3 || s.LastTerm != 3 || len(out.Entries) != 1 || out.Entries[0].Index != 3 {
		t.Fatalf("a conflict: last %d.%d, persist %v", s.LastIndex, s.LastTerm, out.Entries)
	}
}

// Raft paper, section 5.4.2 and figure 8: entries of earlier terms commit only with one of the leader's own; with that
// rule switched off they commit too early.
func TestReplica_paper542_commitOwnTerm(t *testing.T) {
	for _, broken := range []bool{false, true} {
		opts := raft.Defaults(1)
		opts.Dropped[rules.CommitOldTerm] = broken
		r, err := raft.New(opts, raft.Restored{
			Hard: consensus.HardState{Term: 3},
			Base: consensus.SnapshotMeta{Position: position{Index: 1, Term: 1}, Config: testConfig([]memberID{1, 2, 3}, nil),
				ConfigID: consensus.ConfigID{Index: 1, Term: 1}},
			Entries: []entry{{Index: 2, Term: 2, Kind: consensus.EntryNoop}},
		})
		if err != nil {
			t.Fatal(err)
		}
		lead(r)
		ack := func(index consensus.Index) consensus.Index {
			terms := map[consensus.Index]consensus.Term{2: 2, 3: 4}
			r.Step(receive(message{Kind: consensus.MsgAppendReply, From: 2, To: 1, Term: 4, Match: position{Index: index, Term: terms[index]}}))
			return r.Status().Commit
		}
		if got, want := ack(2), map[bool]consensus.Index{false: 1, true: 2}[broken]; got != want {
			t.Fatalf("rule off: %v; entry 2.2 on a majority: commit %d, want %d", broken, got, want)
		}
		if got := ack(3); got != 3 {
			t.Fatalf("the no-op on a majority: commit %d", got)
		}
	}
}

// lead lets member 1 of three win an election, all of it durable.
func lead(r *raft.Replica) {
	out := r.Step(raft.Campaign{})
	term := r.Status().Term + 1
	for _, kind := range []consensus.MessageKind{consensus.MsgPreVoteReply, consensus.MsgVoteReply} {
		out = r.Step(raft.Persisted{Seq: out.Seq}, receive(message{Kind: kind, From: 2, To: 1, Term: term}))
	}
	r.Step(raft.Persisted{Seq: out.Seq}, raft.Persisted{Seq: 100})
}

// Raft thesis, section 10.2.1: the leader sends entries before they are on its own disk, and counts itself only afterwards; a
// follower acknowledges only entries on its disk.
func TestReplica_thesis1021_parallelDisk(t *testing.T) {
	r := single(t, consensus.HardState{Term: 1})
	lead(r)
	ack := func(index consensus.Index) raft.Input {
		return receive(message{Kind: consensus.MsgAppendReply, From: 2, To: 1, Term: 2, Match: position{Index: index, Term: 2}})
	}
	r.Step(ack(2))
	out := r.Step(raft.Propose{Proposals: []consensus.Proposal{{Kind: consensus.EntryCommand}}})
	if m := sent(out, consensus.MsgAppend); m == nil || len(out.Send) == 0 || len(out.SendAfter) != 0 {
		t.Fatalf("send %v, after the disk %v", out.Send, out.SendAfter)
	}
	if r.Step(ack(3)); r.Status().Commit != 2 {
		t.Fatalf("one follower and a leader that still writes: commit %d", r.Status().Commit)
	}
	if r.Step(raft.Persisted{Seq: out.Seq}); r.Status().Commit != 3 {
		t.Fatalf("now both have it: commit %d", r.Status().Commit)
	}
}

// Raft thesis, section 4.2.3: a member with a live leader does not even adopt the term of a disruptive candidate, unless a
// leadership transfer asked for the vote.
func TestReplica_thesis423_disruption(t *testing.T) {
	r := single(t, consensus.HardState{Term: 2})
	r.Step(receive(message{Kind: consensus.MsgHeartbeat, From: 2, To: 1, Term: 2}))
	vote := message{Kind: consensus.MsgVote, From: 3, To: 1, Term: 9, Last: position{Index: 9, Term: 8}}
	if out := r.Step(receive(vote)); r.Status().Term != 2 || len(out.Send)+len(out.SendAfter) != 0 {
		t.Fatalf("term %d, answers %v %v", r.Status().Term, out.Send, out.SendAfter)
	}
	vote.Force = true
	if out := r.Step(receive(vote)); r.Status().Term != 9 || sent(out, consensus.MsgVoteReply) == nil {
		t.Fatalf("forced: term %d", r.Status().Term)
	}
}

// Ensure that no message of a peer makes a replica panic or believe what is impossible.
func TestReplica_Step_nonsense(t *testing.T) {
	r := single(t, consensus.HardState{Term: 1})
	lead(r)
	for kind := consensus.MessageKind(0); kind < 30; kind++ {
		for _, from := range []memberID{0, 1, 2, 77} {
			for _, term := range []consensus.Term{0, 1} {
				m := message{Kind: kind, From: from, To: 1, Term: term, Prev: position{Index: 1 << 60, Term: 1 << 60},
					Round: 1 << 60, Commit: 1 << 60, Mismatch: consensus.Mismatch{Hint: position{Index: 1 << 60, Term: 9}},
					Entries: []entry{{Index: 5}, {Index: 3}}, Reads: []consensus.ReadIndex{{ID: 1}},
					Proposals: []consensus.Proposal{{Kind: 9}, {Kind: consensus.EntryConfig, Payload: []byte("x")}}}
				if kind != consensus.MsgRemoved {
					r.Step(receive(m))
				}
			}
		}
	}
	if s := r.Status(); s.Commit > 2 || s.LastIndex > 2 {
		t.Fatalf("commit %d, last %d", s.Commit, s.LastIndex)
	}
}

// Ensure that New refuses a state that no disk of a correct member holds.
func TestNew_refuses(t *testing.T) {
	if _, err := raft.New(raft.Options{}, raft.Restored{}); !errors.Is(err, raft.ErrOptions) {
		t.Errorf("no options: %v", err)
	}
	for name, restored := range map[string]raft.Restored{
		"a gap":                       {Hard: consensus.HardState{Term: 1}, Entries: []entry{{Index: 1, Term: 1}, {Index: 3, Term: 1}}},
		"a falling term":              {Hard: consensus.HardState{Term: 2}, Entries: []entry{{Index: 1, Term: 2}, {Index: 2, Term: 1}}},
		"a term that was not saved":   {Entries: []entry{{Index: 1, Term: 2}}},
		"a log that begins too late":  {Hard: consensus.HardState{Term: 2}, Entries: []entry{{Index: 5, Term: 2}}},
		"a store ahead of everything": {Hard: consensus.HardState{Term: 2}, Applied: 7},
		"a term without a next one":   {Hard: consensus.HardState{Term: filter.MaxNumber + 1}},
	} {
		if _, err := raft.New(raft.Defaults(1), restored); !errors.Is(err, raft.ErrRestored) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Ensure that each limit may be as small as it can work, and no smaller.
func TestNew_limits(t *testing.T) {
	try := func(adapt func(o *raft.Options)) error {
		o := raft.Defaults(1)
		adapt(&o)
		_, err := raft.New(o, raft.Restored{})
		return err
	}
	for name, limit := range map[string]func(o *raft.Options) *int{
		"heartbeat ticks":    func(o *raft.Options) *int { return &o.HeartbeatTicks },
		"message bytes":      func(o *raft.Options) *int { return &o.MaxMessageBytes },
		"inflight bytes":     func(o *raft.Options) *int { return &o.MaxInflightBytes },
		"inflight messages":  func(o *raft.Options) *int { return &o.MaxInflightMessages },
		"uncommitted bytes":  func(o *raft.Options) *int { return &o.MaxUncommittedBytes },
		"applying bytes":     func(o *raft.Options) *int { return &o.MaxApplyingBytes },
		"unapplied bytes":    func(o *raft.Options) *int { return &o.MaxUnappliedBytes },
		"snapshot log bytes": func(o *raft.Options) *int { return &o.MaxSnapshotLogBytes },
	} {
		if err := try(func(o *raft.Options) { *limit(o) = 1 }); err != nil {
			t.Errorf("%s: one is refused: %v", name, err)
		}
		if err := try(func(o *raft.Options) { *limit(o) = 0 }); !errors.Is(err, raft.ErrOptions) {
			t.Errorf("%s: none is not refused: %v", name, err)
		}
	}
	for _, row := range []struct {
		name  string
		adapt func(o *raft.Options)
		fine  bool
	}{
		{"an election timeout of a heartbeat", func(o *raft.Options) { o.ElectionTicks = o.HeartbeatTicks }, false},
		{"one tick more", func(o *raft.Options) { o.ElectionTicks = o.HeartbeatTicks + 1 }, true},
		{"nobody's id", func(o *raft.Options) { o.ID = consensus.NoMember }, false},
		{"a lease without check-quorum", func(o *raft.Options) { o.LeaderLease, o.CheckQuorum = true, false }, false},
		{"a lease", func(o *raft.Options) { o.LeaderLease = true }, true},
	} {
		if err := try(row.adapt); (err == nil) != row.fine {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
