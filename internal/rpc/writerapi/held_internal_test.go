package writerapi

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/clients"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// heldBytes is what all streams of a service have of its ledger, to the step.
func heldBytes(w *Service) int64 { return w.options.Held.Stats().Bytes }

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
	p, session := turnStream(t, m, m, m)
	w, limit, sequence := p.writer, p.writer.options.Held.Limit(), uint64(0)
	enter := func(bytes int) *streamProposal {
		sequence++
		one := &streamProposal{stream: p, id: p.owner.Proposal(session, sequence), kind: quoratepb.Proposal_KIND_TXN, bytes: bytes,
			command: &kv.Command{Txn: &kv.TxnOp{}}}
		if !p.enter(one, p.handOver) {
			t.Fatalf("request %d does not enter: %v", sequence, p.received)
		}
		return one
	}
	for range 50 { // each nearly as large as what one host may hold
		enter(int(limit/2-limit/8)).Complete(readBack(1), nil)
	}
	var all []*streamProposal
	for range 300 {
		all = append(all, enter(1<<10))
	}
	for _, one := range all {
		one.Complete(readBack(30<<10), nil)
		if most := heldBytes(w); most > limit/2 {
			t.Fatalf("%d bytes are held of %d", most, limit)
		}
	}
	kept, gone := 0, 0
	for i := range p.finished {
		switch f := &p.finished[i]; {
		case f.command != nil:
			t.Error("the command is kept of a result that needs none")
		case f.result.Txn != nil && f.err == nil:
			kept++
		case f.err != nil:
			gone++
			answer := w.proposalAnswer(t.Context(), &finished{id: f.id, kind: f.kind, err: f.err})
			if answer.Verdict != quoratepb.Answer_VERDICT_AGAIN || codes.Code(answer.Code) != codes.ResourceExhausted {
				t.Errorf("a result that is gone is answered with %v", answer)
			}
		}
	}
	if kept < 20 || gone < 20 {
		t.Errorf("%d results are kept and %d are gone", kept, gone)
	}
	if p.close(); heldBytes(w) != 0 {
		t.Errorf("a stream that has ended holds %d bytes", heldBytes(w))
	}
}

// Ensure that a request whose result has to be read by it counts until its answer is sent, and is not read by a client whose
// answers wait; and that a stream which holds nothing ends if there is no room for its request.
func TestStream_enter_noMemory(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	synctest.Test(t, func(t *testing.T) {
		p, session := turnStream(t, m, m, m)
		w := p.writer
		half := int(w.options.Held.Limit() / 2)
		next := func(p *proposeStream, n uint64, bytes int) *streamProposal {
			return &streamProposal{stream: p, id: p.owner.Proposal(session, n), kind: quoratepb.Proposal_KIND_TXN, bytes: bytes,
				command: &kv.Command{Txn: &kv.TxnOp{}}}
		}
		first := next(p, 1, half*3/4)
		if !p.enter(first, p.handOver) {
			t.Fatal("there is room for the first request")
		}
		first.Complete(kv.Result{Revision: 2, Txn: &kv.TxnResult{}, Left: &kv.Left{}}, nil)
		other := w.newStream(noNetwork{}, clients.Owner{ID: 3})
		if other.enter(next(other, 1, half/2), other.handOver) || status.Code(other.received) != codes.ResourceExhausted {
			t.Errorf("another stream of the host ends with %v", other.received)
		}
		entered := make(chan bool, 1)
		go func() { entered <- p.enter(next(p, 2, half/2), p.handOver) }()
		synctest.Wait()
		select {
		case <-entered:
			t.Fatal("the second request is read while the answer to the first waits")
		default:
		}
		p.mu.Lock()
		p.finished[0].result = kv.Result{Revision: 2, Txn: &kv.TxnResult{}, Err: kv.ErrCompacted} // so that it needs no reading
		p.mu.Unlock()
		if r, _, _ := p.next(); len(r.Answers) != 1 {
			t.Fatalf("%v is sent", r)
		}
		synctest.Wait()
		if len(entered) > 0 {
			t.Error("the second request is read while the answer to the first is being sent")
		}
		p.next()
		if !<-entered {
			t.Error("the second request is not read once the answer is sent")
		}
		p.close()
		other.close()
		if got := heldBytes(w); got != 0 {
			t.Errorf("%d bytes are held afterwards", got)
		}
	})
}

// Ensure that verdicts that wait for a client count, and that a stream ends for which there is no room.
func TestStream_Hear_noMemory(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	p, session := turnStream(t, m, m, m)
	reply := make([]byte, 64<<10)
	message := consensus.Message{Kind: consensus.MsgFast, Verdicts: []consensus.Verdict{
		{Attempt: consensus.Attempt{Proposal: p.owner.Proposal(session, 1)}, Reply: reply},
	}}
	for range maxUnreadBytes / len(reply) {
		p.Hear(message)
	}
	if most := p.writer.options.Held.Limit() / 2; heldBytes(p.writer) > most || status.Code(p.received) != codes.ResourceExhausted {
		t.Errorf("%d bytes are held of %d, and the stream ends with %v", heldBytes(p.writer), most, p.received)
	}
	p.close()
	if got := heldBytes(p.writer); got != 0 {
		t.Errorf("%d bytes are held afterwards", got)
	}
}
