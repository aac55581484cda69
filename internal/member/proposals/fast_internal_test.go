package proposals

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/kv"
)

// routed is an outcome that wants to know the route.
type routed struct {
	outcome
	route Route
}

func (r *routed) CompleteAfter(by Passage, result kv.Result, err error) {
	r.route = by.Route
	r.Complete(result, err)
}

// addPut proposes what may be decided on the fast path.
func addPut(t *testing.T, p *Table) (*Pending, *routed) {
	t.Helper()
	o := &routed{}
	command := kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: []byte("v")}}
	q, err := p.Add(consensus.EntryCommand, command.Append(nil), o)
	if err != nil {
		t.Fatal(err)
	}
	return q, o
}

// takeOne takes the one proposal that is to leave.
func takeOne(t *testing.T, p *Table, tick uint64) left {
	t.Helper()
	left := leave(p, tick)
	if len(left) != 1 {
		t.Fatalf("at tick %d %d proposals leave, want one: %v", tick, len(left), left)
	}
	return left[0]
}

func winOf(l left, revision kv.Revision) tally.Decision {
	result := kv.Result{Revision: revision, Put: &kv.PutResult{}}
	return tally.Decision{
		Attempt: consensus.Attempt{Proposal: l.ID, Revision: uint64(revision)}, Reply: result.Append(nil),
	}
}

func checkOpen(t *testing.T, p *Table, want int) {
	t.Helper()
	if p.own.open != want || (p.own.openBytes == 0) != (want == 0) || p.own.openBytes < 0 {
		t.Errorf("%d proposals of %d bytes count as open, want %d", p.own.open, p.own.openBytes, want)
	}
}

func TestTable_Won_answersOnceAndIsRepeated(t *testing.T) {
	p := opened(t)
	_, o := addPut(t, p)
	sent := takeOne(t, p, 1)
	p.Decided(time.Time{}, 1, []tally.Decision{winOf(sent, 9)})
	if o.times != 1 || o.err != nil || o.result.Revision != 9 || o.result.Put == nil || o.route != RouteFast {
		t.Fatalf("got %+v, want the leader's reply, once, by the fast path", o)
	}
	checkOpen(t, p, 0)
	for tick := uint64(2); tick < 5; tick++ {
		p.Resend(tick)
		again := takeOne(t, p, tick)
		if again.ID != sent.ID || again.Fast || !slices.Equal(again.Payload, sent.Payload) {
			t.Fatalf("got %+v, want %v again, the slow way", again, sent.ID)
		}
	}
	p.Decided(time.Time{}, 1, []tally.Decision{winOf(sent, 9)})
	applied(p, []left{sent}, kv.Result{Revision: 9})
	p.Resend(9)
	if left := leave(p, 9); len(left) != 0 || o.times != 1 {
		t.Errorf("once it is applied %v leaves, and it was answered %d times", left, o.times)
	}
	checkOpen(t, p, 0)
}

func TestTable_Won_ignores(t *testing.T) {
	p := opened(t)
	_, o := addPut(t, p)
	sent := takeOne(t, p, 1)
	unreadable, noSession := winOf(sent, 9), winOf(sent, 9)
	unreadable.Reply = []byte{0xff, 1}
	noSession.Proposal.Sequence = 77
	unknown := winOf(sent, 9)
	unknown.Proposal.Session.Number++
	p.Decided(time.Time{}, 1, []tally.Decision{unreadable, noSession, unknown})
	if o.times != 0 {
		t.Fatalf("got %+v, want no answer by what cannot be read or is not known", o)
	}
	applied(p, []left{sent}, kv.Result{Revision: 9})
	p.Decided(time.Time{}, 1, []tally.Decision{winOf(sent, 9)})
	if o.times != 1 || o.route != RouteLeader {
		t.Errorf("got %+v, want the answer of its entry alone", o)
	}
	checkOpen(t, p, 0)
}

// Until a decided proposal is applied, a later leader may find it in the votes alone: under a retired session it would be
// refused for ever.
func TestTable_Won_holdsSessionOpen(t *testing.T) {
	p := opened(t)
	p.sessions.length = 1
	_, o := addPut(t, p)
	sent := takeOne(t, p, 1)
	p.Decided(time.Time{}, 1, []tally.Decision{winOf(sent, 9)})
	applied(p, []left{takeOne(t, p, 2)}) // opens the next session
	for tick := uint64(3); tick < 6; tick++ {
		p.Resend(tick)
		if again := takeOne(t, p, tick); again.ID != sent.ID {
			t.Fatalf("got %v, want %v again and no retirement of its session", again, sent.ID)
		}
	}
	applied(p, []left{sent}, kv.Result{Revision: 9})
	command, err := kv.DecodeCommand(takeOne(t, p, 7).Payload)
	if err != nil || command.SessionRetire == nil || command.SessionRetire.Number != sent.ID.Session.Number {
		t.Errorf("got %+v, %v, want the retirement of the session", command, err)
	}
	if o.times != 1 {
		t.Errorf("it was answered %d times", o.times)
	}
}

func TestTable_Won_thenAbandoned(t *testing.T) {
	p := opened(t)
	q, o := addPut(t, p)
	_, other := addPut(t, p)
	sent := leave(p, 1)
	p.Decided(time.Time{}, 1, []tally.Decision{winOf(sent[0], 9)})
	p.Abandon(q)
	checkOpen(t, p, 1)
	p.Resend(2)
	if again := leave(p, 2); len(again) != 2 || again[0].ID != sent[0].ID {
		t.Errorf("got %v, want it repeated although nobody waits any more", again)
	}
	applied(p, sent, kv.Result{Revision: 9}, kv.Result{Revision: 10})
	if o.times != 1 || other.times != 1 {
		t.Errorf("they were answered %d and %d times", o.times, other.times)
	}
	checkOpen(t, p, 0)
}

func TestTable_Won_endsOnce(t *testing.T) {
	for name, end := range map[string]func(p *Table, sent left){
		"the member stops":    func(p *Table, _ left) { p.FailAll(errStopped) },
		"the session is lost": func(p *Table, sent left) { applied(p, []left{sent}, kv.Result{Err: kv.ErrSessionUnknown}) },
		"the leader refuses": func(p *Table, sent left) {
			p.Refuse([]consensus.Refusal{{ID: sent.ID, Reason: consensus.ReasonNoLeader}})
			p.Tick(2)
		},
		"another attempt is passed over": func(p *Table, sent left) {
			applied(p, []left{sent}, kv.Result{Err: kv.ErrSkipped})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := opened(t)
			_, o := addPut(t, p)
			sent := takeOne(t, p, 1)
			p.Decided(time.Time{}, 1, []tally.Decision{winOf(sent, 9)})
			end(p, sent)
			if o.times != 1 || o.err != nil {
				t.Errorf("got %+v, want the one answer of the win", o)
			}
			checkOpen(t, p, 0)
		})
	}
}

func TestTable_Take_offersFast(t *testing.T) {
	for _, row := range []struct {
		name    string
		command kv.Command
		fast    bool
	}{
		{"put", kv.Command{Put: &kv.PutOp{Key: []byte("a")}}, true},
		{"delete", kv.Command{Delete: &kv.DeleteOp{Key: []byte("a")}}, true},
		{"txn", kv.Command{Txn: &kv.TxnOp{Then: []kv.Op{{Put: &kv.PutOp{Key: []byte("a")}}}}}, true},
		{"lease grant", kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 1, TTLSeconds: 9}}, false},
		{"lease revoke", kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 1}}, false},
		{"compaction", kv.Command{Compact: &kv.CompactOp{Revision: 1}}, false},
		{"publish", kv.Command{Publish: &kv.PublishOp{Member: 1, Name: "m"}}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := opened(t)
			if _, err := p.Add(consensus.EntryCommand, row.command.Append(nil), &outcome{}); err != nil {
				t.Fatal(err)
			}
			if sent := takeOne(t, p, 1); sent.Fast != row.fast {
				t.Errorf("at the first try: got %t, want %t", sent.Fast, row.fast)
			}
			p.Resend(1)
			if again := takeOne(t, p, 2); again.Fast {
				t.Error("it is offered again, while it may be in the log")
			}
		})
	}
	t.Run("no command", func(t *testing.T) {
		p := opened(t)
		put := kv.Command{Put: &kv.PutOp{Key: []byte("a")}}
		if _, err := p.Add(consensus.EntryConfig, put.Append(nil), &outcome{}); err != nil {
			t.Fatal(err)
		}
		if sent := takeOne(t, p, 1); sent.Fast {
			t.Error("a change of the configuration is offered, whatever its payload looks like")
		}
	})
	t.Run("what the proposer itself proposes", func(t *testing.T) {
		if opening := takeOne(t, New(self, 1, 0), 0); opening.Fast {
			t.Error("the opening of the session is offered")
		}
	})
}

func TestTable_Refuse_isNotOfferedAgain(t *testing.T) {
	for _, reason := range []consensus.RefusalReason{consensus.ReasonNoLeader, consensus.ReasonStaleConfig} {
		p := opened(t)
		_, o := addPut(t, p)
		sent := takeOne(t, p, 1)
		p.Refuse([]consensus.Refusal{{ID: sent.ID, Reason: reason}})
		p.Tick(2)
		if again := takeOne(t, p, 2); again.ID != sent.ID || again.Fast || o.times != 0 {
			t.Errorf("%v: got %+v, want %v again, the slow way", reason, again, sent.ID)
		}
	}
}

func TestTable_Resolve_skippedIsRepeated(t *testing.T) {
	p := opened(t)
	q, o := addPut(t, p)
	sent := takeOne(t, p, 1)
	applied(p, []left{sent}, kv.Result{Err: kv.ErrSkipped, Revision: 9})
	if o.times != 0 || !p.sent(q) {
		t.Fatalf("got %+v, sent %t; want no answer, and what is under way counted as sent", o, p.sent(q))
	}
	again := takeOne(t, p, 2)
	if again.ID != sent.ID || again.Fast || !slices.Equal(again.Payload, sent.Payload) {
		t.Fatalf("got %+v, want %v again, at no revision of its own", again, sent.ID)
	}
	applied(p, []left{again}, kv.Result{Revision: 10})
	if o.times != 1 || o.result.Revision != 10 || o.result.Err != nil {
		t.Errorf("got %+v, want the result of the second entry", o)
	}
	checkOpen(t, p, 0)
}

// tableOf is what a snapshot brought along.
type tableOf struct {
	results map[consensus.ProposalID]kv.Result
	retired map[consensus.SessionID]bool
}

func (t tableOf) Result(id consensus.ProposalID) (kv.Result, bool, error) {
	result, ok := t.results[id]
	return result, ok, nil
}

func (t tableOf) SessionOpen(id consensus.SessionID) bool { return !t.retired[id] }

func (t tableOf) SessionEnded(consensus.SessionID) bool { return false }

// A proposal that was given up is made again under another id, however the member learns of it.
func TestTable_aborted(t *testing.T) {
	for name, learn := range map[string]func(t *testing.T, p *Table, id consensus.ProposalID){
		"by an entry": func(_ *testing.T, p *Table, id consensus.ProposalID) {
			p.Resolve([]consensus.Entry{{Index: 5, Kind: consensus.EntryAbort, Proposal: id}}, []kv.Result{{Err: kv.ErrAborted}})
		},
		"by a snapshot": func(t *testing.T, p *Table, id consensus.ProposalID) {
			t.Helper()
			if err := p.Restored(tableOf{results: map[consensus.ProposalID]kv.Result{id: {Err: kv.ErrAborted}}}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := opened(t)
			q, o := addPut(t, p)
			sent := takeOne(t, p, 1)
			for round := uint64(2); round < 5; round++ { // it can happen to it more than once
				learn(t, p, sent.ID)
				if o.times != 0 || p.sent(q) {
					t.Fatalf("round %d: got %+v, sent %t; want no answer, and nothing under way", round, o, p.sent(q))
				}
				checkOpen(t, p, 1)
				again := takeOne(t, p, round)
				if again.ID == sent.ID || !again.Fast || !slices.Equal(again.Payload, sent.Payload) || !p.sent(q) {
					t.Fatalf("round %d: got %+v after %v, want the same under another id, for the first time", round, again, sent.ID)
				}
				applied(p, []left{sent}, kv.Result{Revision: 8}) // no caller waits for a result of the old id
				sent = again
			}
			p.Decided(time.Time{}, 1, []tally.Decision{winOf(sent, 9)})
			applied(p, []left{sent}, kv.Result{Revision: 9})
			if o.times != 1 || o.result.Revision != 9 || o.route != RouteFast {
				t.Errorf("got %+v, want the answer of the last id", o)
			}
			checkOpen(t, p, 0)
			if p.sessions.current.unresolved != 0 || len(p.sessions.current.window) != 0 || p.own.first != nil {
				t.Errorf("%d are kept, and %d count as unresolved, of proposals that are over", len(p.sessions.current.window),
					p.sessions.current.unresolved)
			}
		})
	}
}

func TestTable_aborted_thenAbandoned(t *testing.T) {
	for name, hasLeft := range map[string]bool{"before it left again": false, "after it left again": true} {
		t.Run(name, func(t *testing.T) {
			p := opened(t)
			q, o := addPut(t, p)
			first := takeOne(t, p, 1)
			applied(p, []left{first}, kv.Result{Err: kv.ErrAborted})
			var again []left
			if hasLeft {
				again = leave(p, 2)
			}
			p.Abandon(q)
			checkOpen(t, p, 0)
			p.Resend(3)
			if more := leave(p, 3); len(more) != 0 {
				t.Errorf("%v leaves, and nobody waits", more)
			}
			applied(p, again, kv.Result{Revision: 3})
			if o.times != 0 {
				t.Errorf("got %+v, want no answer", o)
			}
		})
	}
}

func TestTable_aborted_nobodyWaits(t *testing.T) {
	p := opened(t)
	q, o := addPut(t, p)
	sent := takeOne(t, p, 1)
	p.Abandon(q)
	applied(p, []left{sent}, kv.Result{Err: kv.ErrAborted})
	if left := leave(p, 2); len(left) != 0 || o.times != 0 {
		t.Errorf("%v leaves, and it was answered %d times", left, o.times)
	}
}

// The old id's session is free to end, and one that waits under another session's id does not go with it.
func TestTable_aborted_acrossSessions(t *testing.T) {
	p := opened(t)
	p.sessions.length = 1
	_, o := addPut(t, p)
	sent := takeOne(t, p, 1)
	applied(p, []left{takeOne(t, p, 2)}) // opens the next session
	table := tableOf{
		results: map[consensus.ProposalID]kv.Result{sent.ID: {Err: kv.ErrAborted}},
		retired: map[consensus.SessionID]bool{sent.ID.Session: true},
	}
	if err := p.Restored(table); err != nil {
		t.Fatal(err)
	}
	again := takeOne(t, p, 3)
	if again.ID.Session == sent.ID.Session || p.sessions.previous != nil {
		t.Fatalf("got %+v, want it in the session that is open, and the other one over", again)
	}
	applied(p, []left{again}, kv.Result{Revision: 4})
	if o.times != 1 || o.result.Revision != 4 {
		t.Errorf("got %+v, want the answer of the new id", o)
	}
}

func TestTable_aborted_failAll(t *testing.T) {
	p := opened(t)
	_, o := addPut(t, p)
	applied(p, []left{takeOne(t, p, 1)}, kv.Result{Err: kv.ErrAborted})
	p.FailAll(errStopped)
	if o.times != 1 || !errors.Is(o.err, errStopped) {
		t.Errorf("got %+v, want %v once", o, errStopped)
	}
	checkOpen(t, p, 0)
}

func TestTable_Restored_tellsItsOwnRoute(t *testing.T) {
	p := opened(t)
	p.NoteInferred([2]consensus.Index{0, 3})
	_, inferred := addPut(t, p)
	_, restored := addPut(t, p)
	sent := leave(p, 1)
	applied(p, sent[:1], kv.Result{Revision: 2})
	if err := p.Restored(tableOf{results: map[consensus.ProposalID]kv.Result{sent[1].ID: {Revision: 3}}}); err != nil {
		t.Fatal(err)
	}
	if inferred.route != RouteInferred || restored.route != RouteLeader {
		t.Errorf("got %q and %q, want %q and, by the snapshot of a leader, %q",
			inferred.route, restored.route, RouteInferred, RouteLeader)
	}
}

func TestInferredSpans(t *testing.T) {
	var s inferredSpans
	want := func(index consensus.Index, route Route) {
		t.Helper()
		if got := s.routeOf(index); got != route {
			t.Errorf("entry %d: got %s, want %s", index, got, route)
		}
	}
	want(0, RouteLeader)
	want(1, RouteLeader)
	s.note(10, 12)
	s.note(20, 21)
	for index, route := range map[consensus.Index]Route{
		10: RouteLeader, 11: RouteInferred, 12: RouteInferred, 13: RouteLeader, 20: RouteLeader, 21: RouteInferred, 22: RouteLeader,
	} {
		want(index, route)
	}
	for i := range consensus.Index(len(s.spans)) - 1 {
		s.note(100+2*i, 101+2*i)
	}
	want(11, RouteLeader) // the oldest made room
	want(21, RouteInferred)
	want(101, RouteInferred)
	want(102, RouteLeader)
	want(99+2*consensus.Index(len(s.spans)-1), RouteInferred)
}

func TestMayBeFast(t *testing.T) {
	put := func(bytes int) kv.Command {
		return kv.Command{Put: &kv.PutOp{Key: []byte("a"), Value: make([]byte, bytes)}}
	}
	for _, row := range []struct {
		name    string
		command kv.Command
		want    bool
	}{
		{"a put", put(100), true},
		{"a large one", put(1 << 20), false},
		{"a lease, whose answer shows the revision of the store", kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 1}}, false},
	} {
		p := consensus.Proposal{Kind: consensus.EntryCommand, Payload: row.command.Append(nil)}
		if got := mayBeFast(&p); got != row.want {
			t.Errorf("%s: got %v", row.name, got)
		}
	}
}
