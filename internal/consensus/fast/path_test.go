package fast_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/base/keyrange"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raftlog"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// bench is the fast path of one of three voters, with its log and its configurations. Member 1 leads term 2.
type bench struct {
	log     raftlog.Log
	configs configs.History
	path    *fast.Path
	view    fast.View
	states  map[consensus.ProposalID]fast.ProposalState
	decoded map[string]int // how many times the path asked for the footprint of a command
}

func newBench(self consensus.MemberID, dropped rules.Set) *bench {
	base := consensus.SnapshotMeta{
		Position: consensus.Position{Index: 1, Term: 1}, ConfigID: consensus.ConfigID{Index: 1, Term: 1},
		Config: consensus.Config{
			Voters: []consensus.MemberID{1, 2, 3}, Members: []consensus.Member{{ID: 1}, {ID: 2}, {ID: 3}},
		},
	}
	log, err := raftlog.Restore(base.Position, nil, 1, 1, 1<<20)
	if err != nil {
		panic(err) // an empty log is valid
	}
	b := &bench{
		log:     log,
		configs: configs.New(self, consensus.StorageID{}, nil, rules.Set{}),
		view:    fast.View{Now: 1, Term: 2, Leader: 1, Follows: self != 1, Started: true},
		states:  map[consensus.ProposalID]fast.ProposalState{},
		decoded: map[string]int{},
	}
	b.configs.Reset(&base, 1, 1)
	b.configs.Revise()
	b.path = fast.New(fast.Settings{
		Self: self, ElectionTicks: 10, MaxUncommittedBytes: 1 << 20, Dropped: dropped,
		Readable: func(payload []byte) bool { return string(payload) != "?" },
		Options: fast.Options{
			Footprint: func(payload []byte) consensus.Footprint {
				b.decoded[string(payload)]++
				return consensus.Footprint{Keys: []keyrange.Range{keyrange.Single(payload)}}
			},
			State: func(id consensus.ProposalID) fast.ProposalState { return b.states[id] },
		},
	}, &b.log, &b.configs)
	b.path.Restore(100, nil)
	return b
}

func proposalOf(sequence uint64, key string) consensus.Proposal {
	return consensus.Proposal{
		ID: consensus.ProposalID{Session: consensus.SessionID{Member: 2, Number: 1}, Sequence: sequence}, Proposer: 2,
		Kind: consensus.EntryCommand, Payload: []byte(key),
	}
}

// record offers a proposal to the voter, as the leader of its term does.
func (b *bench) record(p consensus.Proposal) consensus.Verdict {
	verdicts, _ := b.path.Record(&b.view, &consensus.Message{
		Kind: consensus.MsgRecord, From: 2, Term: b.view.Term, Config: b.configs.ID(), Proposals: []consensus.Proposal{p},
	})
	return verdicts[0]
}

// append puts an entry into the log.
func (b *bench) append(e consensus.Entry) {
	e.Index, e.Term = b.log.Last()+1, b.view.Term
	b.log.Append(e)
}

// Ensure that a voter gives ascending revisions to proposals without conflicts, and refuses those that conflict with its pool
// or log.
func TestPath_Record(t *testing.T) {
	b := newBench(3, rules.Set{})
	b.append(consensus.Entry{Kind: consensus.EntryCommand, Proposal: proposalOf(1, "a").ID, Payload: []byte("a")})
	for _, x := range []struct {
		name     string
		p        consensus.Proposal
		revision uint64
		refusal  consensus.Refused
	}{
		{"meets the log", proposalOf(2, "a"), 0, consensus.RefusedConflict},
		{"free", proposalOf(3, "b"), 102, consensus.RefusedNot},
		{"the same again", proposalOf(3, "b"), 102, consensus.RefusedNot},
		{"meets the pool", proposalOf(4, "b"), 0, consensus.RefusedConflict},
		{"free, after both", proposalOf(5, "c"), 103, consensus.RefusedNot},
		{"is in the log", proposalOf(1, "z"), 0, consensus.RefusedKnown},
	} {
		got := b.record(x.p)
		if got.Refusal != x.refusal || got.Revision != x.revision {
			t.Errorf("%s: got %+v, want revision %d, refusal %d", x.name, got, x.revision, x.refusal)
		}
	}
	if changes := b.path.TakeChanges(); len(changes) != 2 || b.path.Due() || b.path.Held() != 2 {
		t.Errorf("%d changes of the pool, due %t, %d held", len(changes), b.path.Due(), b.path.Held())
	}
}

// Ensure that an entry of a configuration that is not applied conflicts with every command: a proposal recorded beside it could
// be decided under either configuration.
func TestPath_Record_besideConfig(t *testing.T) {
	b := newBench(3, rules.Set{})
	b.append(consensus.Entry{Kind: consensus.EntryConfig, Proposal: proposalOf(1, "").ID})
	if got := b.record(proposalOf(2, "a")); got.Refusal != consensus.RefusedConflict {
		t.Errorf("got %+v beside the entry", got)
	}
	b.path.Truncate(2, 1)
	b.log.Truncate(2)
	if got := b.record(proposalOf(3, "a")); got.Refusal != consensus.RefusedNot {
		t.Errorf("got %+v after the entry was truncated", got)
	}
}

// Ensure that without the rule a voter records proposals that conflict: the test above sees the rule.
func TestPath_Record_conflict(t *testing.T) {
	b := newBench(3, rules.Set{rules.WitnessNoPoolKeys: true})
	b.record(proposalOf(3, "b"))
	if got := b.record(proposalOf(4, "b")); got.Refusal != consensus.RefusedNot {
		t.Errorf("got %+v", got)
	}
}

// Ensure that a record stays until its proposal is decided, and goes with votes until then.
func TestPath_Applied(t *testing.T) {
	b := newBench(3, rules.Set{})
	kept, gone := proposalOf(1, "a"), proposalOf(2, "b")
	b.record(kept)
	b.record(gone)
	b.append(consensus.Entry{Kind: consensus.EntryCommand, Proposal: gone.ID, ExactRevision: 102, Payload: []byte("b")})
	b.log.Write(1, 1)
	b.log.Persisted(1)
	b.log.CommitTo(2)
	b.log.HandOut(1<<20, 1)
	b.log.ApplyTo(2, 1)
	b.states[gone.ID] = fast.ProposalApplied
	b.path.Applied(2, 2, 102, 1)
	if left := b.path.Acknowledged(); len(left) != 1 || left[0].Proposal != kept.ID {
		t.Errorf("left: %+v", left)
	}
}

// Ensure that a leader takes a proposal at the next revision, once, and not before its term has started.
func TestPath_Admit(t *testing.T) {
	b := newBench(1, rules.Set{})
	p := proposalOf(1, "a")
	b.view.Started = false
	if _, why := b.path.Admit(&b.view, &p, 2); why != consensus.RefusedClosed {
		t.Errorf("before the term has started: %d", why)
	}
	b.view.Started = true
	admitted, why := b.path.Admit(&b.view, &p, 2)
	if e := admitted.Entry; why != consensus.RefusedNot || e.ExactRevision != 101 || e.Answered != 1 {
		t.Fatalf("got %+v, refused %d", e, why)
	}
	b.append(admitted.Entry)
	if _, why := b.path.Admit(&b.view, &p, 2); why != consensus.RefusedKnown {
		t.Errorf("the second time: %d", why)
	}
	other := proposalOf(2, "a")
	if _, why := b.path.Admit(&b.view, &other, 2); why != consensus.RefusedConflict {
		t.Errorf("another command on the key: %d", why)
	}
	if records := b.path.Acknowledged(); len(records) != 1 || records[0].Revision != 101 {
		t.Errorf("with a vote go %+v", records)
	}
	b.path.Truncate(2, 1)
	b.log.Truncate(2)
	if b.path.Held() != 1 {
		t.Errorf("%d records after the entry was truncated, want 1", b.path.Held())
	}
}

// Ensure that the revisions of truncated entries do not stand for those of the entries that replaced them: a voter would
// promise a revision that its log has given. Dropping the rule shows that.
func TestPath_Record_afterTruncation(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		b := newBench(3, rules.Set{rules.TruncateKeepsBound: dropped})
		slow := func(sequence uint64, key string, exact uint64) {
			p := proposalOf(sequence, key)
			b.append(consensus.Entry{Kind: p.Kind, Proposal: p.ID, ExactRevision: exact, Payload: p.Payload})
		}
		slow(1, "a", 0)
		slow(2, "b", 0)
		if v := b.record(proposalOf(3, "c")); v.Revision != 103 {
			t.Fatalf("after two entries: %+v", v)
		}
		b.path.Truncate(2, 1)
		b.log.Truncate(2)
		b.view.Term++
		slow(4, "d", 120)
		slow(5, "e", 121)
		if v := b.record(proposalOf(6, "f")); v.Revision <= 121 != dropped {
			t.Errorf("rule dropped: %v, promised %+v, and the log has 121", dropped, v)
		}
	}
}

// Ensure that a log which a truncation made shorter bounds revisions by its own entries, also where the old bound is kept.
func TestPath_Record_afterShortening(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		b := newBench(3, rules.Set{rules.TruncateKeepsBound: dropped})
		for sequence := uint64(1); sequence < 4; sequence++ {
			p := proposalOf(sequence, fmt.Sprint("slow", sequence))
			b.append(consensus.Entry{Kind: p.Kind, Proposal: p.ID, Payload: p.Payload})
		}
		if v := b.record(proposalOf(4, "a")); v.Revision != 104 {
			t.Fatalf("after three entries: %+v", v)
		}
		b.path.Truncate(2, 1)
		b.log.Truncate(2)
		b.view.Term++
		// The log reaches 101 now, and 102 with record 4, if that comes: the revision promised to it lies beyond, as would that
		// of this one.
		if v := b.record(proposalOf(5, "b")); v.Refusal != consensus.RefusedConflict {
			t.Errorf("rule dropped: %t, promised %+v", dropped, v)
		}
	}
}

// Ensure that the wider rule, by which a proposal meets every entry that opens or ends a session, refuses nothing where no such
// entry waits.
func TestPath_Admit_sessionsMeetAll(t *testing.T) {
	b := newBench(1, rules.Set{rules.SessionsMeetAll: true})
	p := proposalOf(1, "a")
	if _, why := b.path.Admit(&b.view, &p, 2); why != consensus.RefusedNot {
		t.Errorf("refused: %v", why)
	}
}

// admit takes a proposal into the leader's log.
func (b *bench) admit(t *testing.T, p consensus.Proposal) {
	t.Helper()
	admitted, why := b.path.Admit(&b.view, &p, 2)
	if why != consensus.RefusedNot {
		t.Fatalf("%q is refused: %v", p.Payload, why)
	}
	admitted.Entry.Index, admitted.Entry.Term = b.log.Last()+1, 2
	b.log.Append(admitted.Entry)
	b.path.Appended(&b.view, 2, &admitted)
}

// Ensure that the leader decodes a command once to take it, also when more follow, and that the footprint it keeps does not
// outlive the entry.
func TestPath_Appended(t *testing.T) {
	b := newBench(1, rules.Set{})
	for i, key := range []string{"a", "b", "c"} {
		b.admit(t, proposalOf(uint64(i+1), key))
	}
	again := proposalOf(4, "b")
	if _, why := b.path.Admit(&b.view, &again, 2); why != consensus.RefusedConflict {
		t.Errorf("what meets the second entry: %v", why)
	}
	if b.decoded["a"] != 1 || b.decoded["c"] != 1 {
		t.Errorf("decoded %v, want the first and the last once", b.decoded)
	}
	if evaluations := b.path.TakeEvaluations(); len(evaluations) != 1 || len(evaluations[0].Entries) != 3 {
		t.Errorf("to be answered: %+v, want three entries", evaluations)
	}
	b.admit(t, proposalOf(5, "d")) // the path has not asked for its footprint yet when another entry takes its place
	b.path.Truncate(5, 1)
	b.log.Truncate(5)
	b.append(consensus.Entry{Kind: consensus.EntryCommand, Proposal: proposalOf(6, "e").ID, Payload: []byte("e")})
	other := proposalOf(7, "e")
	if _, why := b.path.Admit(&b.view, &other, 2); why != consensus.RefusedConflict {
		t.Errorf("what meets the entry that took the place of another: %v", why)
	}
}

// Ensure that a new leader recovers the attempts that a recovery quorum of its voters recorded, in the order of revisions.
func TestPath_Recover(t *testing.T) {
	b := newBench(3, rules.Set{})
	first, second, rare := proposalOf(1, "a"), proposalOf(2, "b"), proposalOf(3, "c")
	b.record(first)
	b.record(second)
	b.record(rare)
	b.path.StartElection()
	record := func(p consensus.Proposal, revision uint64) consensus.Record {
		return consensus.Record{
			Attempt: consensus.Attempt{Proposal: p.ID, Revision: revision}, Term: 2, Config: b.configs.ID(), Payload: p.Payload,
		}
	}
	b.path.AddBallot(2, []consensus.Record{record(second, 102), record(first, 101), record(rare, 109)})
	entries := b.path.Recover()
	if len(entries) != 2 || entries[0].ExactRevision != 101 || entries[1].ExactRevision != 102 {
		t.Errorf("recovered %+v", entries)
	}
	if again := b.path.Recover(); len(again) != 0 {
		t.Errorf("recovered again: %+v", again)
	}
}

// Ensure that a new leader recovers no command that its build does not know: neither one that only such records name, nor one in
// place of the command that an honest voter recorded under the same attempt, whose record comes later.
func TestPath_Recover_unreadable(t *testing.T) {
	b := newBench(3, rules.Set{})
	own, other := proposalOf(1, "a"), proposalOf(2, "b")
	b.record(own)
	record := func(p consensus.Proposal, revision uint64, payload string) consensus.Record {
		return consensus.Record{Attempt: consensus.Attempt{Proposal: p.ID, Revision: revision}, Term: 2, Config: b.configs.ID(),
			Payload: []byte(payload)}
	}
	b.path.StartElection()
	b.path.AddBallot(2, []consensus.Record{record(own, 101, "?"), record(other, 102, "?"), record(proposalOf(3, "c"), 103, "?")})
	b.path.AddBallot(1, []consensus.Record{record(own, 101, "a"), record(other, 102, "b"), record(proposalOf(3, "c"), 103, "?")})
	entries := b.path.Recover()
	if len(entries) != 1 || string(entries[0].Payload) != "a" {
		t.Errorf("recovered %+v, want a alone", entries)
	}
}

// Ensure that a proposal is decided once the leader and a superquorum gave it one revision, and that this member's own record
// counts once it is durable.
func TestPath_TakeWins(t *testing.T) {
	b := newBench(2, rules.Set{})
	p := proposalOf(1, "a")
	b.path.Propose([]consensus.Proposal{p})
	b.path.RecordOwn(&b.view, &consensus.Message{
		Kind: consensus.MsgRecord, From: 2, Term: 2, Config: b.configs.ID(), Proposals: []consensus.Proposal{p},
	})
	answer := consensus.Verdict{Attempt: consensus.Attempt{Proposal: p.ID, Revision: 101}, Reply: []byte("r")}
	from := func(id consensus.MemberID) *consensus.Message {
		return &consensus.Message{From: id, Term: 2, Config: b.configs.ID(), Verdicts: []consensus.Verdict{answer}}
	}
	b.path.Answered(&b.view, from(1))
	b.path.Recorded(&b.view, from(3))
	b.path.StampOwn(7, 6)
	if wins := b.path.TakeDecided(); len(wins) != 0 {
		t.Fatalf("decided before the own record is durable: %+v", wins)
	}
	b.path.CountOwn(7, 50)
	if wins := b.path.TakeDecided(); len(wins) != 1 || wins[0].Revision != 101 || string(wins[0].Reply) != "r" ||
		wins[0].Waited != (consensus.Waited{WaitedFor: 2, DiskTook: 50}) {
		t.Errorf("decided: %+v", wins)
	}
}

// Ensure that a decision names the member whose answer was the last, with what that says of its disk.
func TestPath_TakeDecided_waited(t *testing.T) {
	for _, last := range []consensus.MemberID{1, 3} {
		b := newBench(2, rules.Set{})
		p := proposalOf(1, "a")
		b.path.Propose([]consensus.Proposal{p})
		b.path.RecordOwn(&b.view, &consensus.Message{
			Kind: consensus.MsgRecord, From: 2, Term: 2, Config: b.configs.ID(), Proposals: []consensus.Proposal{p},
		})
		b.path.StampOwn(7, 7)
		for _, from := range []consensus.MemberID{4 - last, last} {
			answer := consensus.Verdict{Attempt: consensus.Attempt{Proposal: p.ID, Revision: 101}, Reply: []byte("r")}
			m := &consensus.Message{From: from, Term: 2, Config: b.configs.ID(), Verdicts: []consensus.Verdict{answer},
				Waited: consensus.Waited{DiskTook: uint32(from)}}
			if from == 1 {
				b.path.Answered(&b.view, m)
			} else {
				b.path.Recorded(&b.view, m)
			}
		}
		want := consensus.Waited{WaitedFor: last, DiskTook: uint32(last)}
		if got := b.path.TakeDecided(); len(got) != 1 || got[0].Waited != want {
			t.Errorf("decided: %+v, want that it waited for %+v", got, want)
		}
	}
}

// Ensure that a voter keeps at most maxPoolRecords records, however many proposers there are.
func TestPath_Record_fullPool(t *testing.T) {
	const most = 4096
	b := newBench(3, rules.Set{})
	p := proposalOf(1, "")
	for held := 0; ; held++ {
		p.ID.Session.Member, p.Payload = consensus.MemberID(10+held), binary.BigEndian.AppendUint32(nil, uint32(held))
		if v := b.record(p); v.Refusal == consensus.RefusedNot && held < most {
			continue
		} else if held != most || v.Refusal != consensus.RefusedFull {
			t.Errorf("with %d records: %v, want room for %d", held, v.Refusal, most)
		}
		return
	}
}

// Ensure that a voter with a known leader asks about a record that is more than five election timeouts old, and again after as
// long.
func TestPath_Orphans(t *testing.T) {
	b := newBench(3, rules.Set{})
	b.view.Now = 0
	b.record(proposalOf(1, "k"))
	for _, row := range []struct {
		now    uint64
		leader consensus.MemberID
		asks   int
	}{{50, 1, 0}, {51, consensus.NoMember, 0}, {51, 1, 1}, {52, 1, 0}, {60, 1, 0}, {102, 1, 1}} {
		b.view.Now, b.view.Leader = row.now, row.leader
		if got := b.path.Orphans(&b.view); len(got) != row.asks {
			t.Errorf("at %d with leader %v: asks about %v, want %d", row.now, row.leader, got, row.asks)
		}
	}
}

// Ensure that a leader aborts only a proposal that is not decided and not in its log.
func TestPath_Abort(t *testing.T) {
	for _, row := range []struct {
		name   string
		before func(b *bench, p consensus.Proposal)
		aborts bool
	}{
		{"never heard of", func(*bench, consensus.Proposal) {}, true},
		{"applied", func(b *bench, p consensus.Proposal) { b.states[p.ID] = fast.ProposalApplied }, false},
		{"of a retired session", func(b *bench, p consensus.Proposal) { b.states[p.ID] = fast.ProposalRetired }, false},
		{"logged", func(b *bench, p consensus.Proposal) {
			b.append(consensus.Entry{Kind: consensus.EntryCommand, Proposal: p.ID, Payload: p.Payload})
		}, false},
	} {
		b, p := newBench(1, rules.Set{}), proposalOf(1, "k")
		row.before(b, p)
		if got := b.path.Update() && b.path.Abort(p.ID); got != row.aborts {
			t.Errorf("%s: aborts %t", row.name, got)
		}
	}
	if b := newBench(1, rules.Set{}); !b.path.Update() || b.path.Abort(consensus.ProposalID{}) {
		t.Error("aborts what has no name")
	}
}

// Ensure that the records a proposer has of its own proposals count in the term in which it made them, and not in the next one.
func TestPath_ResetTally_ownRecords(t *testing.T) {
	for _, next := range []bool{false, true} {
		b, p := newBench(2, rules.Set{}), proposalOf(1, "k")
		said := func(from consensus.MemberID, v consensus.Verdict) *consensus.Message {
			return &consensus.Message{From: from, Term: b.view.Term, Config: b.configs.ID(), Verdicts: []consensus.Verdict{v},
				Proposals: []consensus.Proposal{p}}
		}
		b.path.ResetTally()
		b.path.Propose([]consensus.Proposal{p})
		b.path.RecordOwn(&b.view, said(2, consensus.Verdict{}))
		b.path.StampOwn(1, 0) // on its way to the disk
		if next {
			b.view.Term++
			b.path.ResetTally()
			b.path.Propose([]consensus.Proposal{p})
		}
		given := consensus.Verdict{Attempt: consensus.AttemptOf(p.ID, 101, p.Payload)}
		b.path.Recorded(&b.view, said(3, given))
		given.Reply = []byte("reply")
		b.path.Answered(&b.view, said(1, given))
		b.path.CountOwn(1, 0)
		if decided := b.path.TakeDecided(); (len(decided) == 1) == next {
			t.Errorf("in the next term: %t; decided %+v", next, decided)
		}
	}
}
