package member

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

func clientID(sequence uint64) consensus.ProposalID {
	return consensus.ProposalID{Session: consensus.ClientSession(100, 1), Sequence: sequence}
}

func addFor(t *testing.T, c *clients, sequence uint64) *outcome {
	t.Helper()
	o := &outcome{}
	if err := c.add(clientID(sequence), []byte("x"), o, false); err != nil {
		t.Fatal(err)
	}
	return o
}

func resolveFor(c *clients, sequence uint64, result kv.Result) {
	c.resolve([]consensus.Entry{{Proposal: clientID(sequence)}}, []kv.Result{result})
}

func sequences(proposals []consensus.Proposal) (all []uint64) {
	for _, p := range proposals {
		all = append(all, p.ID.Sequence)
	}
	return all
}

func TestClients_resolve(t *testing.T) {
	var c clients
	o := addFor(t, &c, 1)
	back := addFor(t, &c, 1) // the client came back over another stream
	if got := c.take(nil, 1, 9); len(got) != 1 || got[0].ID != clientID(1) || got[0].Proposer != 9 {
		t.Fatalf("took %v, want it once", got)
	}
	resolveFor(&c, 1, kv.Result{Err: kv.ErrSkipped})
	if o.times != 0 {
		t.Error("a skipped entry ended it")
	}
	resolveFor(&c, 1, kv.Result{Revision: 5})
	resolveFor(&c, 1, kv.Result{Revision: 6})
	if o.times != 1 || back.times != 1 || o.result.Revision != 5 || back.result.Revision != 5 {
		t.Errorf("got %+v and %+v, want the first result, once", o, back)
	}
	if len(c.open) != 0 || c.openBytes != 0 {
		t.Errorf("%d proposals with %d bytes are left", len(c.open), c.openBytes)
	}
}

func TestClients_resend(t *testing.T) {
	var c clients
	for sequence := uint64(1); sequence <= 20; sequence++ {
		addFor(t, &c, sequence)
	}
	want := sequences(c.take(nil, 3, 0))
	if c.resend(2); c.waiting() {
		t.Error("what was sent at tick 3 is repeated for tick 2")
	}
	addFor(t, &c, 21)
	c.resend(3)
	c.resend(3)
	if got := sequences(c.take(nil, 4, 0)); !slices.Equal(got, append(want, 21)) {
		t.Errorf("got %v, want all in order", got)
	}
	c.refuse([]consensus.Refusal{{ID: clientID(1), Reason: consensus.ReasonNoLeader},
		{ID: clientID(2), Reason: consensus.ReasonStaleConfig}, {ID: clientID(3), Reason: consensus.ReasonBusy}})
	if got := sequences(c.take(nil, 5, 0)); !slices.Equal(got, []uint64{2}) {
		t.Errorf("after the refusals: got %v", got)
	}
	c.tick(3)
	if got := sequences(c.take(nil, 6, 0)); !slices.Equal(got, []uint64{1}) {
		t.Errorf("a tick later: got %v", got)
	}
}

func TestClients_abandon(t *testing.T) {
	var c clients
	o, other := addFor(t, &c, 1), addFor(t, &c, 1)
	c.abandon(clientID(1), o)
	if c.take(nil, 1, 0); len(c.open) != 1 {
		t.Fatal("one who waits was forgotten with the other")
	}
	c.abandon(clientID(1), other)
	c.resend(1)
	if got := c.take(nil, 2, 0); len(got) != 0 || len(c.open) != 0 || c.openBytes != 0 {
		t.Errorf("sent again: %v; left: %d", got, len(c.open))
	}
	resolveFor(&c, 1, kv.Result{})
	c.failAll(ErrStopped)
	if o.times+other.times != 0 {
		t.Error("who gave up was told")
	}
}

// resultsOf is a table of results.
type resultsOf struct {
	results map[consensus.ProposalID]kv.Result
	ended   bool
}

func (r resultsOf) Result(id consensus.ProposalID) (kv.Result, bool, error) {
	result, ok := r.results[id]
	return result, ok, nil
}

func (r resultsOf) SessionOpen(consensus.SessionID) bool  { return !r.ended }
func (r resultsOf) SessionEnded(consensus.SessionID) bool { return r.ended }

func TestClients_restored(t *testing.T) {
	var c clients
	opening, known, unknown := addFor(t, &c, 0), addFor(t, &c, 1), addFor(t, &c, 2)
	table := resultsOf{results: map[consensus.ProposalID]kv.Result{clientID(1): {Revision: 7}}}
	if err := c.restored(table); err != nil {
		t.Fatal(err)
	}
	if known.times != 1 || known.result.Revision != 7 || unknown.times != 0 {
		t.Errorf("got %+v and %+v", known, unknown)
	}
	table.ended = true
	if err := c.restored(table); err != nil {
		t.Fatal(err)
	}
	if unknown.times != 1 || !errors.Is(unknown.err, ErrSessionLost) || opening.times != 0 {
		t.Errorf("got %+v and %+v, want doubt about the proposal alone", unknown, opening)
	}
}

func TestClients_bounded(t *testing.T) {
	c := clients{openBytes: maxOpenBytes}
	if err := c.add(clientID(1), []byte("x"), &outcome{}, false); !errors.Is(err, ErrTooManyRequests) {
		t.Errorf("got %v", err)
	}
}

func TestRoll_silent(t *testing.T) {
	var r roll
	begun := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
	session := func(client consensus.MemberID) consensus.SessionID { return consensus.ClientSession(client, 1) }
	open := []consensus.SessionID{session(1), session(2)}
	silent := func(second int) []consensus.SessionID { return r.silent(open, at(second), 10*time.Second) }
	r.note([]consensus.MemberID{3}, at(0))
	if got := silent(0); len(got) != 0 {
		t.Errorf("new to this leader: got %v", got)
	}
	r.note([]consensus.MemberID{1}, at(6))
	if got := silent(11); !slices.Equal(got, []consensus.SessionID{session(2)}) {
		t.Errorf("got %v, want the second", got)
	}
	if _, known := r.heard[3]; known {
		t.Error("a client without a session is remembered for ever")
	}
	r.forget()
	if got := silent(100); len(got) != 0 {
		t.Errorf("after another one led: got %v, want the clock to begin anew", got)
	}
}

// TestClients_offered sends what reached the core by a message only if it stays without an end, or its entry was skipped.
func TestClients_offered(t *testing.T) {
	var c clients
	c.tick(5)
	o := &outcome{}
	if err := c.add(clientID(1), []byte("x"), o, true); err != nil {
		t.Fatal(err)
	}
	if c.waiting() {
		t.Error("it is sent twice")
	}
	c.resend(4)
	if c.waiting() {
		t.Error("it is repeated before its time")
	}
	c.resend(5)
	if got := sequences(c.take(nil, 6, 0)); !slices.Equal(got, []uint64{1}) {
		t.Errorf("without an end: took %v", got)
	}
	resolveFor(&c, 1, kv.Result{Err: kv.ErrSkipped})
	if got := sequences(c.take(nil, 7, 0)); !slices.Equal(got, []uint64{1}) || o.times != 0 {
		t.Errorf("skipped: took %v, ended %d times", got, o.times)
	}
	resolveFor(&c, 1, kv.Result{Revision: 3})
	if o.times != 1 || len(c.open) != 0 {
		t.Errorf("ended %d times", o.times)
	}
}
