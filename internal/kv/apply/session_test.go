package apply_test

import (
	"context"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
)

func watchAll() watch.Request { return watch.Request{Key: []byte{0}, End: []byte{0}} }

// deleted returns the keys of the deletions that a stream delivers, after the answer to its creation.
func deleted(t *testing.T, s *watch.Stream) (keys []string) {
	t.Helper()
	for keys == nil {
		responses, err := s.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range responses {
			if r.Batch == nil {
				continue
			}
			for _, ev := range r.Batch.Events {
				if ev.Kind == kv.EventDelete {
					keys = append(keys, string(ev.KV.Key))
				}
			}
		}
	}
	return keys
}

func open(member, number uint64, keep ...uint64) kv.Command {
	return kv.Command{SessionOpen: &kv.SessionOpenOp{Member: member, Number: number, Keep: keep}}
}

func retire(member, number uint64) kv.Command {
	return kv.Command{SessionRetire: &kv.SessionRetireOp{Member: member, Number: number}}
}

func proposals(member, number uint64) func(sequence uint64) consensus.ProposalID {
	session := consensus.SessionID{Member: consensus.MemberID(member), Number: number}
	return func(sequence uint64) consensus.ProposalID {
		return consensus.ProposalID{Session: session, Sequence: sequence}
	}
}

// openSession opens a session by an entry of its own and returns a function that makes its proposal ids.
func openSession(b *bench, member, number uint64, keep ...uint64) func(sequence uint64) consensus.ProposalID {
	b.t.Helper()
	id := proposals(member, number)
	if res := b.propose(id(1), open(member, number, keep...)); res.Err != nil {
		b.t.Fatalf("open session %d of member %d: %v", number, member, res.Err)
	}
	return id
}

func TestMachine_Apply_once(t *testing.T) {
	b := newBench(t)
	s := openSession(b, 1, 5)
	prev := kv.Command{Put: &kv.PutOp{Key: []byte("a"), Value: []byte("x"), PrevKV: true}}
	first := b.propose(s(2), prev)
	b.do(put("a", "between"))
	b.want("a second entry", b.propose(s(2), prev), first)
	b.want("a second entry with another command", b.propose(s(2), put("b", "y")), first)
	if got := b.get("a"); string(got.Value) != "between" || b.get("b") != nil {
		t.Errorf("the second entry wrote: a=%+v b=%+v", got, b.get("b"))
	}

	e := b.entry(put("c", "1"))
	e.Proposal = s(3)
	twice := *b.entry(put("c", "1"))
	twice.Proposal = s(3)
	results := b.apply(b.log[len(b.log)-2], twice)
	b.want("both in one batch", results[1], results[0])
	if got := b.get("c"); got.Version != 1 {
		t.Errorf("c was written %d times", got.Version)
	}

	reject := b.propose(s(4), putLease("d", 99))
	b.do(grant(99))
	b.want("a rejection is a result, too", b.propose(s(4), putLease("d", 99)), reject)
	b.open()
	b.want("opened again", b.propose(s(2), prev), first)
	if res, ok, err := b.m.Result(s(4)); !ok || err != nil || res.Err != kv.ErrLeaseNotFound {
		t.Errorf("Result: %+v %v %v", res, ok, err)
	}
	if _, ok, _ := b.m.Result(s(900)); ok {
		t.Error("a proposal that never came has a result")
	}
}

func TestMachine_Apply_sessions(t *testing.T) {
	b := newBench(t)
	unknown := func(what string, res kv.Result) {
		t.Helper()
		if res.Err != kv.ErrSessionUnknown {
			t.Errorf("%s: %+v", what, res)
		}
	}
	old := proposals(1, 5)
	unknown("never opened", b.propose(old(2), put("a", "1")))
	openSession(b, 1, 5)
	kept := openSession(b, 1, 6, 5)
	other := openSession(b, 2, 5)
	b.propose(old(2), put("a", "1"))
	b.propose(kept(2), put("b", "1"))

	s := openSession(b, 1, 7, 6)
	unknown("not kept by the member's next session", b.propose(old(3), put("a", "2")))
	unknown("its old proposals, too", b.propose(old(2), put("a", "2")))
	unknown("its delayed opening", b.propose(old(1), open(1, 5)))
	if res := b.propose(kept(2), put("b", "2")); res.Err != nil || res.Revision != 3 {
		t.Errorf("kept: %+v", res)
	}
	if res := b.propose(other(2), put("c", "1")); res.Err != nil {
		t.Errorf("of another member: %+v", res)
	}
	if res := b.propose(s(1), open(1, 7)); res.Err != nil {
		t.Errorf("a second entry of its opening: %+v", res)
	}
	if res := b.propose(kept(3), put("b", "3")); res.Err != nil {
		t.Errorf("a second entry of the opening retired what the first kept: %+v", res)
	}
	if res := b.propose(kept(4), retire(1, 6)); res.Err != nil {
		t.Errorf("a session retires itself: %+v", res)
	}
	unknown("retired by itself", b.propose(kept(2), put("b", "9")))
	b.do(retire(3, 1))
	unknown("retired before its opening came", b.propose(proposals(3, 1)(1), open(3, 1)))
	unknown("an opening in another one's name", b.propose(proposals(8, 1)(1), open(9, 1)))

	b.open()
	unknown("opened again: retired stays retired", b.propose(old(1), open(1, 5)))
	if !b.m.SessionOpen(s(1).Session) || b.m.SessionOpen(kept(1).Session) {
		t.Error("opened again: the wrong sessions are open")
	}
}

// The memory of a member's former sessions does not grow with their number, and refuses the opening of one that never came
// before.
func TestMachine_Apply_former_sessions_share_a_row(t *testing.T) {
	b := newBench(t)
	rows := func() (n int) {
		it, err := b.eng.NewIter([]byte("s"), []byte("t"))
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		for valid := it.First(); valid; valid = it.Next() {
			n++
		}
		return n
	}
	openSession(b, 1, 5)
	before := rows()
	for number := uint64(10); number <= 200; number += 10 {
		openSession(b, 1, number)
	}
	if got := rows(); got != before {
		t.Errorf("%d rows after 20 more sessions, want %d as before", got, before)
	}
	b.open()
	last := proposals(1, 200)
	if res := b.propose(proposals(1, 105)(1), open(1, 105)); res.Err != kv.ErrSessionUnknown {
		t.Errorf("an opening that comes late: %+v", res)
	}
	if res := b.propose(last(2), put("a", "1")); res.Err != nil {
		t.Errorf("the session that a late opening must not end: %+v", res)
	}
}

func TestMachine_Apply_retired_session_leaves_no_rows(t *testing.T) {
	b := newBench(t)
	b.do(put("a", "1"))
	rows := func() (n int) {
		it, err := b.eng.NewIter([]byte("q"), []byte("r"))
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		for valid := it.First(); valid; valid = it.Next() {
			n++
		}
		return n
	}
	s := openSession(b, 1, 5)
	for i := uint64(2); i < 2000; i += 3 {
		b.propose(s(i), put("a", "1"))
	}
	if got := rows(); got != 667 {
		t.Fatalf("%d results, want 667", got)
	}
	openSession(b, 1, 6)
	if got := rows(); got != 1 {
		t.Fatalf("%d results are left, want that of the opening", got)
	}
}

func TestMachine_Apply_config(t *testing.T) {
	b := newBench(t)
	s := openSession(b, 2, 5)
	b.propose(s(2), put("a", "1"))
	b.do(kv.Command{Publish: &kv.PublishOp{Member: 2, Name: "two"}})
	b.do(kv.Command{Alarm: &kv.AlarmOp{Activate: true, Member: 2, Kind: kv.AlarmNoSpace}})
	change := consensus.ConfigChange{
		Protocol: consensus.ProtocolSingle,
		Config: consensus.Config{Voters: []consensus.MemberID{1, 3},
			Members: []consensus.Member{{ID: 1}, {ID: 3, PeerURLs: []string{"http://3"}}}},
		Tombs: []consensus.MemberID{2},
	}
	e := b.entry(put("a", ""))
	e.Kind, e.Term, e.Proposal = consensus.EntryConfig, 4, s(3)
	e.Payload = consensus.AppendConfigChange(nil, &change)
	b.want("a configuration", b.apply(*e)[0], kv.Result{Revision: 2})
	index := e.Index
	check := func(when string) {
		t.Helper()
		config, id := b.m.Config()
		if !slices.Equal(config.Voters, []consensus.MemberID{1, 3}) || id != (consensus.ConfigID{Index: index, Term: 4}) {
			t.Errorf("%s: %+v %v", when, config, id)
		}
		if at, ok := b.m.Removed(2); !ok || at != index || len(b.m.Tombstones()) != 1 {
			t.Errorf("%s: tombstone %v %v", when, at, ok)
		}
		if _, ok := b.m.Published(2); ok || len(b.m.Alarms()) != 0 {
			t.Errorf("%s: something of the removed member is left", when)
		}
		b.flush()
		if meta := b.m.SnapshotMeta(); meta.Position != b.m.Applied() || meta.ConfigID != id {
			t.Errorf("%s: snapshot %+v", when, meta)
		}
	}
	check("at once")
	b.open()
	check("opened again")
	tail := func(cmd kv.Command, id consensus.ProposalID) error {
		e := b.entry(cmd)
		e.Term, e.Proposal = 4, id
		return b.apply(*e)[0].Err
	}
	if got := b.m.Orphans(); !slices.Equal(got, []consensus.SessionID{s(1).Session}) {
		t.Errorf("orphans %v", got)
	}
	if err := tail(put("a", "2"), s(4)); err != nil {
		t.Errorf("a proposal that was under way when its member was removed: %v", err)
	}
	retire := kv.Command{SessionRetire: &kv.SessionRetireOp{Member: 2, Number: s(1).Session.Number}}
	if err := tail(retire, consensus.ProposalID{}); err != nil || len(b.m.Orphans()) != 0 {
		t.Errorf("retired by the leader: %v, orphans %v", err, b.m.Orphans())
	}
	if err := tail(put("a", "3"), s(5)); err != kv.ErrSessionUnknown {
		t.Errorf("a proposal of the removed member, late: %v", err)
	}
	if err := tail(open(2, 9), proposals(2, 9)(1)); err != kv.ErrSessionUnknown {
		t.Errorf("a new session of the removed member: %v", err)
	}
}
