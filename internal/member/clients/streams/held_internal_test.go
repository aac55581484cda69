package streams

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/clients"
)

// heldBytes is what all streams of a member have of its ledger, to the step.
func heldBytes(all *Streams) int64 { return all.options.Held.Stats().Bytes }

// readBack is a result of a transaction that read a pair of so many bytes.
func readBack(bytes int) kv.Result {
	pair := kv.KeyValue{Key: []byte("k"), Value: make([]byte, bytes)}
	return kv.Result{Revision: 2, Txn: &kv.TxnResult{Succeeded: true, Responses: []kv.OpResult{
		{Range: &kv.RangeResult{KVs: []kv.KeyValue{pair}, Count: 1}},
	}}}
}

// Ensure that what a stream holds of requests and results, until its client has read the answers, is a part of what clients may
// hold, and comes back: requests of which only the answer is left are not kept, and results for which there is no room go.
func TestStream_holds(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	all, limit, sequence := s.all, s.all.options.Held.Limit(), uint64(0)
	enter := func(bytes int) *proposal {
		sequence++
		one := &proposal{stream: s, id: s.owner.Proposal(session, sequence), kind: quoratepb.Proposal_KIND_TXN, bytes: bytes,
			command: &kv.Command{Txn: &kv.TxnOp{}}}
		if s.enter(one) != goesOn {
			t.Fatalf("request %d does not enter: %v", sequence, s.over)
		}
		return one
	}
	for range 50 { // each nearly as large as what one host may hold
		enter(int(limit/2-limit/8)).Complete(readBack(1), nil)
	}
	var waiting []*proposal
	for range 300 {
		waiting = append(waiting, enter(1<<10))
	}
	for _, one := range waiting {
		one.Complete(readBack(30<<10), nil)
		if most := heldBytes(all); most > limit/2 {
			t.Fatalf("%d bytes are held of %d", most, limit)
		}
	}
	kept, gone := 0, 0
	for i := range s.finished {
		switch f := &s.finished[i]; {
		case f.command != nil:
			t.Error("the command is kept of a result that needs none")
		case f.result.Txn != nil && f.err == nil:
			kept++
		case f.err != nil:
			gone++
			answer := all.proposalAnswer(t.Context(), &finished{id: f.id, kind: f.kind, err: f.err})
			if answer.Verdict != quoratepb.Answer_VERDICT_AGAIN || codes.Code(answer.Code) != codes.ResourceExhausted {
				t.Errorf("a result that is gone is answered with %v", answer)
			}
		}
	}
	if kept < 20 || gone < 20 {
		t.Errorf("%d results are kept and %d are gone", kept, gone)
	}
	if s.Close(); heldBytes(all) != 0 {
		t.Errorf("a stream that has ended holds %d bytes", heldBytes(all))
	}
}

// Ensure that a request whose result has to be read by it counts until its answer is sent, and is not read by a client whose
// answers wait; and that a stream which holds nothing ends if there is no room for its request.
func TestStream_enter_noMemory(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	all, driver := s.all, s.driver.(*counter)
	half := int(all.options.Held.Limit() / 2)
	next := func(s *Stream, n uint64, bytes int) *proposal {
		return &proposal{stream: s, id: s.owner.Proposal(session, n), kind: quoratepb.Proposal_KIND_TXN, bytes: bytes,
			command: &kv.Command{Txn: &kv.TxnOp{}}}
	}
	first, second := next(s, 1, half*3/4), next(s, 2, half/2)
	if s.enter(first) != goesOn {
		t.Fatal("there is room for the first request")
	}
	first.Complete(kv.Result{Revision: 2, Txn: &kv.TxnResult{}, Left: &kv.Left{}}, nil)
	other := all.newStream(clients.Owner{ID: 3}, "", &counter{})
	if other.enter(next(other, 1, half/2)) != Over || status.Code(other.over) != codes.ResourceExhausted {
		t.Errorf("another stream of the host ends with %v", other.over)
	}
	if s.enter(second) != Room || driver.room != 0 {
		t.Fatal("the second request is read while the answer to the first waits")
	}
	s.finished[0].result = kv.Result{Revision: 2, Txn: &kv.TxnResult{}, Err: kv.ErrCompacted} // so that it needs no reading
	if r, _, _ := s.Next(t.Context(), time.Time{}); len(r.GetAnswers()) != 1 || driver.room != 1 {
		t.Fatalf("%v is sent, and the stream was told %d times of room", r, driver.room)
	}
	if s.enter(second) != Room {
		t.Error("the second request is read while the answer to the first is being sent")
	}
	if s.Next(t.Context(), time.Time{}); driver.room != 2 || s.enter(second) != goesOn {
		t.Errorf("the second request is not read once the answer is sent; it was told %d times of room", driver.room)
	}
	s.Close()
	other.Close()
	if got := heldBytes(all); got != 0 {
		t.Errorf("%d bytes are held afterwards", got)
	}
}

// Ensure that verdicts that wait for a client count, and that those are lost for which there is no room: the log has the answers.
func TestStream_Hear_noMemory(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	reply := make([]byte, 64<<10)
	message := consensus.Message{Kind: consensus.MsgFast, Verdicts: []consensus.Verdict{
		{Attempt: consensus.Attempt{Proposal: s.owner.Proposal(session, 1)}, Reply: reply},
	}}
	for range s.all.options.Bounds.UnreadBytes / len(reply) {
		s.Hear(message)
	}
	most := s.all.options.Held.Limit() / 2
	if held := heldBytes(s.all); held > most || held < most/2 || s.over != nil || s.heard.verdicts != len(s.heard.messages) {
		t.Errorf("%d bytes are held of %d, with %d verdicts in %d messages, and the stream ends with %v", held, most,
			s.heard.verdicts, len(s.heard.messages), s.over)
	}
	s.Close()
	if got := heldBytes(s.all); got != 0 {
		t.Errorf("%d bytes are held afterwards", got)
	}
}
