package streams

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/proposals"
)

// account counts how often it was given back.
type account struct{ released int }

func (*account) Take(int) error { return nil }
func (*account) Walk(int) error { return nil }
func (a *account) Release()     { a.released++ }

// recalls reads what a result needs into an account.
type recalls struct {
	*fullMember
	memory *account
}

func (r recalls) Complete(_ context.Context, _ *kv.Command, result *kv.Result) error {
	result.Left, result.Memory = nil, r.memory
	return nil
}

// Ensure that the memory of an answer that is read when it is sent counts until it was sent, and that of one which is not sent
// comes back when the stream ends.
func TestStream_Next_memoryUntilSent(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	memory := &account{}
	s.all.options.Requests = recalls{m, memory}
	answer := func(sequence uint64, result kv.Result) {
		one := &proposal{stream: s, id: s.owner.Proposal(session, sequence), kind: quoratepb.Proposal_KIND_TXN,
			command: &kv.Command{Txn: &kv.TxnOp{}}}
		if s.enter(one) != goesOn {
			t.Fatal("no room")
		}
		one.Complete(result, nil)
	}
	answer(1, kv.Result{Revision: 2, Txn: &kv.TxnResult{}, Left: &kv.Left{}})
	if r, _, _ := s.Next(t.Context(), time.Time{}); len(r.GetAnswers()) != 1 || memory.released != 0 {
		t.Errorf("%d answers; the memory was given back %d times before they are sent", len(r.GetAnswers()), memory.released)
	}
	if s.Next(t.Context(), time.Time{}); memory.released != 1 {
		t.Errorf("the memory was given back %d times once the answer was sent", memory.released)
	}
	answer(2, kv.Result{Revision: 3, Txn: &kv.TxnResult{}, Left: &kv.Left{}})
	s.Next(t.Context(), time.Time{})
	kept := &account{}
	answer(3, kv.Result{Revision: 3, Txn: &kv.TxnResult{}, Memory: kept})
	if s.Close(); memory.released != 2 || kept.released != 1 {
		t.Errorf("at the end the memory was given back %d and %d times", memory.released, kept.released)
	}
	late := &account{}
	(&proposal{stream: s, id: s.owner.Proposal(session, 4)}).Complete(kv.Result{Memory: late}, nil)
	if late.released != 1 {
		t.Error("what comes after the end keeps its memory")
	}
}

// looking notes when a request is looked at.
type looking struct {
	*fullMember
	looks func()
}

func (l looking) Admit(ctx context.Context, r *quoratepb.Proposal, as Asked) (*kv.Command, error) {
	l.looks()
	return l.fullMember.Admit(ctx, r, as)
}

// Ensure that a command that has its turn is proposed before the next one of its message is looked at, which may take long.
func TestStream_Turned_proposesAtOnce(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	var proposed []int
	s.all.options.Requests = looking{m, func() { proposed = append(proposed, len(m.proposed)) }}
	s.Take(proposes(put(session, 1), put(session, 2)))
	if need := s.Go(t.Context()); need != Turn {
		t.Fatalf("got need %v", need)
	}
	s.Turned(func() {}, nil)
	s.Go(t.Context())
	if len(proposed) != 2 || proposed[1] != 1 {
		t.Errorf("proposed when each was looked at: %v, want [0 1]", proposed)
	}
}

// Ensure that the same is so on the fast path: the command is offered first.
func TestStream_Turned_offersAtOnce(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	looks := 0
	s.all.options.Requests = looking{m, func() { looks++ }}
	s.all.options.Clients = leading{m}
	r := proposes(put(session, 1), put(session, 2))
	r.TermConfig = &quoratepb.TermConfig{}
	s.Take(r)
	if need := s.Go(t.Context()); need != Turn {
		t.Fatalf("got need %v", need)
	}
	s.Turned(func() {}, nil)
	if need := s.Go(t.Context()); need != Offer || looks != 1 || len(s.Offering().Proposals) != 1 {
		t.Errorf("got need %v after %d looks", need, looks)
	}
	if need := s.Go(t.Context()); need != Turn || looks != 2 {
		t.Errorf("got need %v after %d looks", need, looks)
	}
}

// leading are the Clients of a leader.
type leading struct{ *fullMember }

func (leading) ExpectFor(id consensus.ProposalID, _ *kv.Command, _ proposals.Completion) (consensus.Proposal, bool, error) {
	return consensus.Proposal{ID: id}, true, nil
}

// Ensure that a stream that waits for nothing keeps no room of the most that it had.
func TestStream_keepsNoRoom(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	var all []*quoratepb.Proposal
	for n := range uint64(2000) {
		all = append(all, put(session, n+1))
	}
	s.Take(proposes(all...))
	for s.Go(t.Context()) == Turn {
		s.Turned(nil, nil)
	}
	for i := range m.proposed {
		m.proposed[i].Done.Complete(kv.Result{Put: &kv.PutResult{}}, nil)
	}
	s.Next(t.Context(), time.Time{})
	if s.Next(t.Context(), time.Time{}); cap(s.ready) > keptProposals || s.grown != 0 || heldBytes(s.all) != 0 {
		t.Errorf("an idle stream keeps room for %d commands, grown to %d, and %d bytes", cap(s.ready), s.grown, heldBytes(s.all))
	}
}

// Ensure that a message of many parts counts until it is done with, and ends a stream for which there is no memory.
func TestStream_Take_manyParts(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	many := &quoratepb.ProposeRequest{}
	for range 10_000 {
		many.Records = append(many.Records, put(session, 1))
	}
	s.Take(many)
	if got := heldBytes(s.all); got < 10_000*partBytes {
		t.Errorf("%d bytes are held of a message of 10,000 records", got)
	}
	if need := s.Go(t.Context()); need != Done || heldBytes(s.all) != 0 {
		t.Errorf("got need %v, and %d bytes are held afterwards", need, heldBytes(s.all))
	}
	for int64(len(many.Records))*partBytes <= s.all.options.Held.Limit() {
		many.Records = append(many.Records, many.Records...)
	}
	s.Take(many)
	if need := s.Go(t.Context()); need != Over || heldBytes(s.all) != 0 {
		t.Errorf("too many: got need %v, and %d bytes are held", need, heldBytes(s.all))
	}
	if _, ended, err := s.Next(t.Context(), time.Time{}); !ended && err == nil {
		if _, ended, err = s.Next(t.Context(), time.Time{}); !ended || err == nil {
			t.Errorf("the stream goes on: %t, %v", ended, err)
		}
	}
}

// Ensure that room comes back when Next has nothing to say about the verdicts that it took.
func TestStream_Next_nothingToSay(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	s.Next(t.Context(), time.Time{}) // the first status
	half := int(s.all.options.Held.Limit() / 2)
	s.Hear(consensus.Message{Kind: consensus.MsgFast, Verdicts: []consensus.Verdict{
		{Attempt: consensus.Attempt{Proposal: s.owner.Proposal(session, 1)}, Reply: make([]byte, half/2)}}})
	if r, _, _ := s.Next(t.Context(), time.Time{}); r != nil {
		t.Fatalf("got %v", r)
	}
	one := &proposal{stream: s, id: s.owner.Proposal(session, 2), bytes: half * 3 / 4}
	if need := s.enter(one); need != goesOn {
		t.Errorf("got need %v: it waits for room of what is never sent", need)
	}
}

// Ensure that a client that sends no more and does not read is told that its answers are gone.
func TestStream_End_unread(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	s.all.options.Bounds.UnreadBytes = 100
	s.Next(t.Context(), time.Time{})
	s.Take(proposes(put(session, 1)))
	for s.Go(t.Context()) == Turn {
		s.Turned(nil, nil)
	}
	s.End(io.EOF)
	m.proposed[0].Done.Complete(kv.Result{Put: &kv.PutResult{}}, nil)
	if r, ended, err := s.Next(t.Context(), time.Time{}); r != nil || !ended || err == nil {
		t.Errorf("the answer is gone, and the stream ends with %v, %t, %v", r, ended, err)
	}
}

// Ensure that a client which asks for many results again is not read while half of what may be unread waits for it: else all of
// them would be dropped, time after time.
func TestStream_full_unread(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	s.all.options.Bounds.UnreadBytes = 10 * resultBytes(&kv.Result{})
	s.Next(t.Context(), time.Time{})
	rounds, entered := 0, uint64(0)
	for entered < 100 {
		one := &proposal{stream: s, id: s.owner.Proposal(session, entered+1), kind: quoratepb.Proposal_KIND_PUT}
		switch need := s.enter(one); need {
		case goesOn:
			entered++
			one.Complete(kv.Result{Put: &kv.PutResult{}}, nil)
		case Room:
			if rounds++; rounds > 100 {
				t.Fatalf("no room after %d", entered)
			}
			s.Next(t.Context(), time.Time{})
		default:
			t.Fatalf("the stream ended after %d: %v", entered, s.over)
		}
	}
	if rounds < 10 {
		t.Errorf("it waited %d times for its client to read", rounds)
	}
}

// Ensure that a message of many parts takes and gives back nothing once its stream has ended, at whatever moment that was.
func TestStream_Take_manyPartsAfterClose(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	many := &quoratepb.ProposeRequest{}
	for range 10_000 {
		many.Records = append(many.Records, put(1, 1))
	}
	for _, row := range []struct {
		name string
		run  func(s *Stream)
	}{
		{"taken, ended and done with", func(s *Stream) { s.Take(many); s.Close(); s.Go(t.Context()) }},
		{"ended, taken and done with", func(s *Stream) { s.Close(); s.Take(many); s.Go(t.Context()) }},
		{"given back late", func(s *Stream) { s.Take(many); s.Close(); s.done() }},
	} {
		s, _ := newTestStream(m)
		if row.run(s); heldBytes(s.all) != 0 {
			t.Errorf("%s: %d bytes are held", row.name, heldBytes(s.all))
		}
	}
}
