package proposals

import (
	"errors"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

func clientID(sequence uint64) consensus.ProposalID {
	return consensus.ProposalID{Session: consensus.ClientSession(100, 1), Sequence: sequence}
}

func addFor(t *testing.T, c *Table, sequence uint64) *outcome {
	t.Helper()
	o := &outcome{}
	if err := c.AddFor(clientID(sequence), []byte("x"), o, false); err != nil {
		t.Fatal(err)
	}
	return o
}

func resolveFor(c *Table, sequence uint64, result kv.Result) {
	c.Resolve([]consensus.Entry{{Proposal: clientID(sequence)}}, []kv.Result{result})
}

func sequences(proposals []left) (all []uint64) {
	for _, p := range proposals {
		all = append(all, p.ID.Sequence)
	}
	return all
}

func TestTable_clients_Resolve(t *testing.T) {
	c := opened(t)
	o := addFor(t, c, 1)
	back := addFor(t, c, 1) // the client came back over another stream
	c.InferCommits(true)
	if got := leave(c, 1); len(got) != 1 || got[0].ID != clientID(1) || got[0].Proposer != self {
		t.Fatalf("took %v, want it once", got)
	}
	resolveFor(c, 1, kv.Result{Err: kv.ErrSkipped})
	if o.times != 0 {
		t.Error("a skipped entry ended it")
	}
	resolveFor(c, 1, kv.Result{Revision: 5})
	resolveFor(c, 1, kv.Result{Revision: 6})
	if o.times != 1 || back.times != 1 || o.result.Revision != 5 || back.result.Revision != 5 {
		t.Errorf("got %+v and %+v, want the first result, once", o, back)
	}
	if c.clients.open != 0 || c.clients.openBytes != 0 || len(c.ofClients) != 0 {
		t.Errorf("%d proposals with %d bytes are left", c.clients.open, c.clients.openBytes)
	}
}

func TestTable_clients_Resend(t *testing.T) {
	c := opened(t)
	for sequence := uint64(1); sequence <= 20; sequence++ {
		addFor(t, c, sequence)
	}
	want := sequences(leave(c, 3))
	if c.Resend(2); c.Waiting() {
		t.Error("what was sent at tick 3 is repeated for tick 2")
	}
	addFor(t, c, 21)
	c.Resend(3)
	c.Resend(3)
	if got := sequences(leave(c, 4)); !slices.Equal(got, append(want, 21)) {
		t.Errorf("got %v, want all in order", got)
	}
	c.Refuse([]consensus.Refusal{{ID: clientID(1), Reason: consensus.ReasonNoLeader},
		{ID: clientID(2), Reason: consensus.ReasonStaleConfig}, {ID: clientID(3), Reason: consensus.ReasonBusy}})
	if got := sequences(leave(c, 5)); !slices.Equal(got, []uint64{2}) {
		t.Errorf("after the refusals: got %v", got)
	}
	c.Tick(3)
	if got := sequences(leave(c, 6)); !slices.Equal(got, []uint64{1}) {
		t.Errorf("a tick later: got %v", got)
	}
}

func TestTable_clients_Abandon(t *testing.T) {
	c := opened(t)
	o, other := addFor(t, c, 1), addFor(t, c, 1)
	c.AbandonFor(clientID(1), o)
	if leave(c, 1); c.clients.open != 1 {
		t.Fatal("one who waits was forgotten with the other")
	}
	c.AbandonFor(clientID(1), other)
	c.Resend(1)
	if got := leave(c, 2); len(got) != 0 || c.clients.open != 0 || c.clients.openBytes != 0 {
		t.Errorf("sent again: %v; left: %d", got, c.clients.open)
	}
	resolveFor(c, 1, kv.Result{})
	c.FailAll(errStopped)
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

func TestTable_clients_Restored(t *testing.T) {
	c := opened(t)
	opening, known, unknown := addFor(t, c, 0), addFor(t, c, 1), addFor(t, c, 2)
	table := resultsOf{results: map[consensus.ProposalID]kv.Result{clientID(1): {Revision: 7}}}
	if err := c.Restored(table); err != nil {
		t.Fatal(err)
	}
	if known.times != 1 || known.result.Revision != 7 || unknown.times != 0 {
		t.Errorf("got %+v and %+v", known, unknown)
	}
	table.ended = true
	if err := c.Restored(table); err != nil {
		t.Fatal(err)
	}
	if unknown.times != 1 || !errors.Is(unknown.err, ErrSessionLost) || opening.times != 0 {
		t.Errorf("got %+v and %+v, want doubt about the proposal alone", unknown, opening)
	}
}

func TestTable_clients_bounded(t *testing.T) {
	c := opened(t)
	c.clients.openBytes = maxOpenBytes
	if err := c.AddFor(clientID(1), []byte("x"), &outcome{}, false); !errors.Is(err, ErrTooMany) {
		t.Errorf("got %v", err)
	}
}

// Ensure that what came in one message leaves together and in order, but for what is refused, and that a duplicate waits with the first.
func TestTable_AddAllFor(t *testing.T) {
	c := opened(t)
	outcomes := [5]*outcome{{}, {}, {}, {}, {}}
	all := []OfClient{
		{ID: clientID(1), Payload: []byte("x"), Done: outcomes[0]},
		{ID: clientID(2), Payload: []byte("x"), Done: outcomes[1], Refused: ErrTooLarge},
		{ID: clientID(3), Payload: []byte("x"), Done: outcomes[2]},
		{ID: clientID(1), Payload: []byte("x"), Done: outcomes[3]},
		{ID: clientID(4), Payload: make([]byte, maxOpenBytes), Done: outcomes[4]},
	}
	c.AddAllFor(all)
	for i, want := range []error{nil, ErrTooLarge, nil, nil, ErrTooMany} {
		if !errors.Is(all[i].Refused, want) {
			t.Errorf("%d: got %v, want %v", i, all[i].Refused, want)
		}
	}
	if got := sequences(leave(c, 6)); !slices.Equal(got, []uint64{1, 3}) {
		t.Errorf("took %v", got)
	}
	resolveFor(c, 1, kv.Result{Revision: 3})
	for i, want := range []int{1, 0, 0, 1, 0} {
		if outcomes[i].times != want {
			t.Errorf("%d was told %d times, want %d", i, outcomes[i].times, want)
		}
	}
}

// TestTable_clients_offered sends what reached the core by a message only if it stays without an end, or its entry was skipped.
func TestTable_clients_offered(t *testing.T) {
	c := opened(t)
	c.Tick(5)
	o := &outcome{}
	if err := c.AddFor(clientID(1), []byte("x"), o, true); err != nil {
		t.Fatal(err)
	}
	if c.Waiting() {
		t.Error("it is sent twice")
	}
	c.Resend(4)
	if c.Waiting() {
		t.Error("it is repeated before its time")
	}
	c.Resend(5)
	if got := sequences(leave(c, 6)); !slices.Equal(got, []uint64{1}) {
		t.Errorf("without an end: took %v", got)
	}
	resolveFor(c, 1, kv.Result{Err: kv.ErrSkipped})
	if got := sequences(leave(c, 7)); !slices.Equal(got, []uint64{1}) || o.times != 0 {
		t.Errorf("skipped: took %v, ended %d times", got, o.times)
	}
	resolveFor(c, 1, kv.Result{Revision: 3})
	if o.times != 1 || c.clients.open != 0 {
		t.Errorf("ended %d times", o.times)
	}
}

// sequenceNoter notes in a list which proposal ended.
type sequenceNoter struct {
	list     *[]uint64
	sequence uint64
}

func (n sequenceNoter) Complete(kv.Result, error) { *n.list = append(*n.list, n.sequence) }

// A run of the simulator is the same each time only if those who wait are told in one order.
func TestTable_clients_Restored_inOrder(t *testing.T) {
	c := opened(t)
	var want, got []uint64
	table := resultsOf{results: map[consensus.ProposalID]kv.Result{}}
	for sequence := uint64(1); sequence <= 20; sequence++ {
		want = append(want, sequence)
		table.results[clientID(sequence)] = kv.Result{}
		if err := c.AddFor(clientID(sequence), nil, sequenceNoter{&got, sequence}, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Restored(table); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want all in the order in which they came", got, err)
	}
}

// Ensure that so many may wait for one proposal, and that one more is refused.
func TestTable_AddFor_manyJoin(t *testing.T) {
	p := opened(t)
	id := consensus.ProposalID{Session: consensus.SessionID{Member: 7, Number: 1 << 63}, Sequence: 1}
	for range maxJoined + 1 {
		if err := p.AddFor(id, nil, &outcome{}, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.AddFor(id, nil, &outcome{}, false); !errors.Is(err, ErrTooMany) {
		t.Errorf("one more: got %v", err)
	}
}
