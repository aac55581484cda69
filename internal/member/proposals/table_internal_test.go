package proposals

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/membership"
)

const self = consensus.MemberID(7)

var errStopped = errors.New("stopped")

// outcome records how a proposal ended.
type outcome struct {
	times  int
	result kv.Result
	err    error
}

func (o *outcome) Complete(result kv.Result, err error) {
	o.times++
	o.result, o.err = result, err
}

// left is a proposal that leaves, and whether it is offered to all voters.
type left struct {
	consensus.Proposal
	Fast bool
}

// leave takes what leaves from a member that offers.
func leave(p *Table, tick uint64) (all []left) {
	out := p.Take(tick, time.Time{}, true)
	for _, one := range append(out.Changes, out.Commands...) {
		all = append(all, left{Proposal: one})
	}
	for _, one := range out.Offers {
		all = append(all, left{one, true})
	}
	return all
}

// applied makes entries of proposals, in order, as the log would hold them.
func applied(p *Table, proposals []left, results ...kv.Result) {
	entries := make([]consensus.Entry, len(proposals))
	for i, q := range proposals {
		entries[i] = consensus.Entry{Index: consensus.Index(i + 1), Kind: q.Kind, Proposal: q.ID, Payload: q.Payload}
	}
	for len(results) < len(entries) {
		results = append(results, kv.Result{})
	}
	p.Resolve(entries, results)
}

// opened returns a proposer whose first session is open.
func opened(t *testing.T) *Table {
	t.Helper()
	p := New(self, 1<<32, 0)
	open := leave(p, 0)
	if len(open) != 1 || open[0].ID.Sequence != 0 {
		t.Fatalf("first take: got %v, want the session's opening alone", open)
	}
	applied(p, open)
	return p
}

func add(t *testing.T, p *Table) *outcome {
	t.Helper()
	o := &outcome{}
	if _, err := p.Add(consensus.EntryCommand, []byte("x"), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTable_Take_waitsForSession(t *testing.T) {
	p := New(self, 0, 0)
	add(t, p)
	first := leave(p, 0)
	if len(first) != 1 || first[0].ID.Sequence != 0 {
		t.Fatalf("got %v, want only the opening of the session", first)
	}
	if again := leave(p, 0); len(again) != 0 {
		t.Fatalf("got %v before the session is open, want nothing", again)
	}
	applied(p, first)
	now := leave(p, 0)
	if len(now) != 1 || now[0].ID.Sequence != 1 || now[0].ID.Session.Member != self {
		t.Fatalf("got %v, want proposal 1 of the session", now)
	}
}

func TestTable_Resolve_completesOnce(t *testing.T) {
	p := opened(t)
	o := add(t, p)
	sent := leave(p, 1)
	applied(p, sent, kv.Result{Revision: 5})
	applied(p, sent, kv.Result{Revision: 6}) // a second entry of the same proposal
	if o.times != 1 || o.result.Revision != 5 || o.err != nil {
		t.Errorf("got %+v, want one completion with the first result", o)
	}
}

func TestTable_Resend_keepsIDAndOrder(t *testing.T) {
	p := opened(t)
	add(t, p)
	add(t, p)
	sent := leave(p, 3)
	if p.Resend(2); len(leave(p, 4)) != 0 {
		t.Error("what was sent at tick 3 was repeated for tick 2")
	}
	late := add(t, p)
	p.Resend(3)
	again := leave(p, 5)
	if len(again) != 3 || again[0].ID != sent[0].ID || again[1].ID != sent[1].ID || again[2].ID.Sequence != 3 {
		t.Errorf("got %v, want %v again and then the new one", again, sent)
	}
	applied(p, again)
	if late.times != 1 {
		t.Errorf("the new one completed %d times", late.times)
	}
}

func TestTable_Refuse(t *testing.T) {
	for _, tc := range []struct {
		name   string
		reason consensus.RefusalReason
		change bool
		want   error
		again  bool
	}{
		{name: "no leader: goes out again", reason: consensus.ReasonNoLeader, again: true},
		{name: "no leader for a change: it did not enter the log, goes out again", reason: consensus.ReasonNoLeader,
			change: true, again: true},
		{name: "busy: stays, another copy may be in the log", reason: consensus.ReasonBusy},
		{name: "busy for a change: it did not enter the log, goes out again", reason: consensus.ReasonBusy, change: true,
			again: true},
		{name: "refused change: the caller is told why", reason: consensus.ReasonMemberExists, change: true,
			want: &membership.RefusedError{Reason: consensus.ReasonMemberExists}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := opened(t)
			o := &outcome{}
			kind := consensus.EntryCommand
			if tc.change {
				kind = consensus.EntryConfig
			}
			if _, err := p.Add(kind, nil, o); err != nil {
				t.Fatal(err)
			}
			sent := leave(p, 1)
			p.Refuse([]consensus.Refusal{{ID: sent[0].ID, Reason: tc.reason}})
			if len(leave(p, 1)) != 0 {
				t.Error("it was repeated before the next tick")
			}
			p.Tick(2)
			if got := len(leave(p, 2)) == 1; got != tc.again {
				t.Errorf("goes out again: got %v, want %v", got, tc.again)
			}
			var refused *membership.RefusedError
			if errors.As(tc.want, &refused) {
				var got *membership.RefusedError
				if !errors.As(o.err, &got) || got.Reason != refused.Reason {
					t.Errorf("got %v, want %v", o.err, tc.want)
				}
			} else if !errors.Is(o.err, tc.want) {
				t.Errorf("got %v, want %v", o.err, tc.want)
			}
		})
	}
}

func TestTable_Abandon_isNotRepeated(t *testing.T) {
	p := opened(t)
	o := &outcome{}
	q, err := p.Add(consensus.EntryCommand, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	if p.sent(q) {
		t.Error("it counts as sent before it left")
	}
	sent := leave(p, 1)
	if !p.sent(q) {
		t.Error("it does not count as sent after it left")
	}
	if !p.Abandon(q) {
		t.Error("an abandoned proposal that had left counts as one that did not")
	}
	p.Resend(5)
	if got := leave(p, 6); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
	applied(p, sent)
	if o.times != 0 {
		t.Error("an abandoned proposal was completed")
	}
}

// A session is replaced when it is used up and retired only when everything in it is resolved.
func TestTable_Take_turnsSessions(t *testing.T) {
	p := opened(t)
	p.sessions.length = 2
	first := p.sessions.current.id
	straggler := add(t, p)
	add(t, p)
	sent := leave(p, 1)
	applied(p, sent[1:])
	add(t, p)
	turn := leave(p, 2)
	if len(turn) != 2 || turn[0].ID.Sequence != 0 || turn[0].ID.Session == first || turn[1].ID.Session != first {
		t.Fatalf("got %v, want the next session's opening, and a proposal of the current one meanwhile", turn)
	}
	if command, err := kv.DecodeCommand(turn[0].Payload); err != nil || command.SessionOpen == nil ||
		!slices.Equal(command.SessionOpen.Keep, []uint64{first.Number}) {
		t.Fatalf("got %+v, %v, want an opening that keeps session %d, in which something is under way", command, err, first.Number)
	}
	applied(p, turn)
	add(t, p)
	if next := leave(p, 3); len(next) != 1 || next[0].ID.Session == first {
		t.Fatalf("got %v, want one proposal of the new session, and no retirement before the straggler", next)
	}
	applied(p, sent[:1])
	if straggler.times != 1 {
		t.Fatal("the straggler was not completed")
	}
	retire := leave(p, 4)
	if len(retire) != 1 {
		t.Fatalf("got %v, want the retirement", retire)
	}
	command, err := kv.DecodeCommand(retire[0].Payload)
	if err != nil || command.SessionRetire == nil || command.SessionRetire.Number != first.Number {
		t.Fatalf("got %+v, %v, want the retirement of %v", command, err, first)
	}
	applied(p, retire)
	if p.sessions.previous != nil || p.sessions.retiring {
		t.Error("the retired session is still kept")
	}
}

func TestTable_opened_triesLargerNumber(t *testing.T) {
	p := New(self, 1<<32, 0)
	first := leave(p, 0)
	applied(p, first, kv.Result{Err: kv.ErrSessionUnknown})
	second := leave(p, 1)
	if len(second) != 1 || second[0].ID.Session.Number <= first[0].ID.Session.Number+1 {
		t.Errorf("got %v after %v was refused, want a much larger number", second, first)
	}
}

func TestTable_Resolve_lostSession(t *testing.T) {
	p := opened(t)
	lost := p.sessions.current.id
	a, b := add(t, p), add(t, p)
	sent := leave(p, 1)
	applied(p, sent[:1], kv.Result{Err: kv.ErrSessionUnknown})
	if !errors.Is(a.err, ErrLeaderFailed) || !errors.Is(b.err, ErrLeaderFailed) {
		t.Errorf("got %v and %v, want %v: it may have happened", a.err, b.err, ErrLeaderFailed)
	}
	next := leave(p, 2)
	if len(next) != 1 || next[0].ID.Sequence != 0 || next[0].ID.Session.Number <= lost.Number {
		t.Errorf("got %v, want the opening of a larger session than %v", next, lost)
	}
}

// A session that is lost while the one before it is being finished must not keep the next one from being opened.
func TestTable_Resolve_lostSessionWhileRetiring(t *testing.T) {
	p := opened(t)
	p.sessions.length = 1
	straggler := add(t, p)
	old := leave(p, 1)
	turn := leave(p, 2)
	applied(p, turn)
	add(t, p)
	sent := leave(p, 3)
	applied(p, sent, kv.Result{Err: kv.ErrSessionUnknown})
	waits := add(t, p)
	opening := leave(p, 4)
	if len(opening) != 1 || opening[0].ID.Sequence != 0 || opening[0].ID.Session == sent[0].ID.Session {
		t.Fatalf("got %v, want the opening of another session", opening)
	}
	applied(p, opening)
	next := leave(p, 5)
	if len(next) != 1 || next[0].ID.Session != opening[0].ID.Session {
		t.Fatalf("got %v, want one proposal of the new session", next)
	}
	applied(p, next, kv.Result{Revision: 3})
	if waits.times != 1 || waits.result.Revision != 3 {
		t.Errorf("got %+v, want the result of the new session", waits)
	}
	applied(p, old, kv.Result{Revision: 4})
	retire := leave(p, 6)
	if straggler.times != 1 || len(retire) != 1 {
		t.Fatalf("got %+v and then %v, want the straggler done and its session retired", straggler, retire)
	}
	applied(p, retire)
	if p.sessions.previous != nil || p.sessions.retiring {
		t.Error("the retired session is still kept")
	}
}

func TestTable_Add_refusesTooMany(t *testing.T) {
	p := opened(t)
	p.own.open = maxOpenProposals
	if _, err := p.Add(consensus.EntryCommand, nil, &outcome{}); !errors.Is(err, ErrTooMany) {
		t.Errorf("got %v, want %v", err, ErrTooMany)
	}
}

func TestTable_Add_refusesTooManyBytes(t *testing.T) {
	p := opened(t)
	o := &outcome{}
	q, err := p.Add(consensus.EntryCommand, make([]byte, maxOpenBytes), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Add(consensus.EntryCommand, []byte("x"), o); !errors.Is(err, ErrTooMany) {
		t.Errorf("got %v, want %v", err, ErrTooMany)
	}
	p.Abandon(q)
	if _, err := p.Add(consensus.EntryCommand, []byte("x"), o); err != nil {
		t.Errorf("after the large one was given up: %v", err)
	}
}

// Ensure that writes of clients leave room for what keeps the cluster running, and that this has a bound, too.
func TestTable_Add_reserve(t *testing.T) {
	encoded := func(c kv.Command) []byte { return c.Append(nil) }
	of := func(p *Table, kind consensus.EntryKind, payload []byte) bool {
		_, err := p.Add(kind, payload, &outcome{})
		return err == nil
	}
	clients := map[string][]byte{"a put": encoded(kv.Command{Put: &kv.PutOp{Key: []byte("k")}}),
		"a grant": encoded(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 1}}), "a txn": encoded(kv.Command{Txn: &kv.TxnOp{}}),
		"a client's end of a lease": encoded(kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 1}})}
	upkeep := map[string][]byte{"a job": encoded(kv.Command{Job: &kv.JobOp{ID: 1}}),
		"the end of a lease that expired": encoded(kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 1, Term: 2}}),
		"a limit":                         encoded(kv.Command{Limit: &kv.LimitOp{Delete: "a"}})}
	p := opened(t)
	for what, bytes := range map[string]int{"many": 0, "large": maxOpenBytes} {
		p.own.open, p.own.openBytes = maxOpenProposals, bytes
		if bytes > 0 {
			p.own.open = 0
		}
		for name, payload := range clients {
			if of(p, consensus.EntryCommand, payload) {
				t.Errorf("%s: %s is taken", what, name)
			}
		}
		for name, payload := range upkeep {
			if !of(p, consensus.EntryCommand, payload) {
				t.Errorf("%s: %s is refused", what, name)
			}
		}
		if !of(p, consensus.EntryConfig, []byte("x")) {
			t.Errorf("%s: a change of members is refused", what)
		}
	}
	p.own.open = maxOpenProposals + maxOpenProposals/reservedPart
	if of(p, consensus.EntryCommand, upkeep["a job"]) {
		t.Error("the reserve has no bound")
	}
}

func TestTable_FailAll(t *testing.T) {
	p := opened(t)
	sent, queued := add(t, p), (*outcome)(nil)
	leave(p, 1)
	queued = add(t, p)
	p.FailAll(errStopped)
	if !errors.Is(sent.err, errStopped) || !errors.Is(queued.err, errStopped) {
		t.Errorf("got %v and %v, want %v", sent.err, queued.err, errStopped)
	}
	if p.own.open != 0 || p.own.openBytes != 0 {
		t.Errorf("%d of %d bytes are still counted as open", p.own.open, p.own.openBytes)
	}
}

// TestTable_ResendOverdue repeats nothing that is behind something that still moves: on a narrow link a queue takes longer than the
// patience of its proposer, and a repeat would wait behind it, too.
func TestTable_ResendOverdue(t *testing.T) {
	p := opened(t)
	for range 4 {
		add(t, p)
	}
	sent := leave(p, 1)
	p.Tick(8)
	applied(p, sent[:1])
	p.Tick(11)
	p.ResendOverdue(7)
	if got := leave(p, 11); len(got) != 0 {
		t.Error("what is behind an answer of tick 8 is repeated at tick 11, with a patience of 4")
	}
	p.Tick(12)
	p.ResendOverdue(8)
	if got := leave(p, 12); len(got) != 3 {
		t.Errorf("nothing has ended for 4 ticks, and repeated is %v", got)
	}
}

// TestTable_ResendOverdue_overtaken repeats what was lost while others move on.
func TestTable_ResendOverdue_overtaken(t *testing.T) {
	p := opened(t)
	for range 3 {
		add(t, p)
	}
	sent := leave(p, 1)
	p.Tick(8)
	applied(p, sent[1:2])
	p.ResendOverdue(0)
	if got := leave(p, 8); len(got) != 0 {
		t.Errorf("repeated before its time: %v", got)
	}
	p.Tick(9)
	p.ResendOverdue(5)
	if got := leave(p, 9); len(got) != 1 || got[0].ID != sent[0].ID {
		t.Errorf("repeated: %v, want what was overtaken: %v", got, sent[0])
	}
	p.Tick(10)
	applied(p, sent[2:])
	p.ResendOverdue(9)
	if got := leave(p, 10); len(got) != 0 {
		t.Errorf("what was repeated at tick 9 was overtaken by something that left before it, and is repeated again: %v", got)
	}
}

// TestTable_ResendOverdue_endedElsewhere repeats what was lost although others end all the time: they have not left from here, but
// wait for the room that the lost one takes, and clients sent them through other members.
func TestTable_ResendOverdue_endedElsewhere(t *testing.T) {
	p := opened(t)
	p.SetPace(Pace{Least: 100, Patience: pacePatience})
	id := func(sequence uint64) consensus.ProposalID {
		return consensus.ProposalID{Session: consensus.SessionID{Member: 7, Number: 1 << 63}, Sequence: sequence}
	}
	add := func(sequence uint64) {
		t.Helper()
		if err := p.AddFor(id(sequence), make([]byte, 80), &outcome{}, false); err != nil {
			t.Fatal(err)
		}
	}
	add(1)
	if got := leave(p, 1); len(got) != 1 || got[0].ID != id(1) {
		t.Fatalf("%v leave, want the first", got)
	}
	for tick := uint64(2); ; tick++ {
		add(tick)
		p.Tick(tick)
		applied(p, []left{{Proposal: consensus.Proposal{ID: id(tick)}}})
		if tick > pacePatience {
			p.ResendOverdue(tick - pacePatience)
		}
		if again := leave(p, tick); len(again) > 0 {
			if again[0].ID != id(1) {
				t.Errorf("%v leaves, want the first", again[0].ID)
			}
			return
		}
		if tick > 5*pacePatience {
			t.Fatal("a proposal that was lost is never repeated")
		}
	}
}
