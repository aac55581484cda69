package streams

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/member/proposals"
)

// partsMember admits commands of many parts, whatever is proposed, and has a result for each that is proposed again.
type partsMember struct {
	*fullMember
	parts int
	kept  int                          // calls of KeepClient
	fresh map[consensus.ProposalID]int // how often each was admitted that had not passed before
}

func (m *partsMember) Admit(_ context.Context, _ *quoratepb.Proposal, as Asked) (*kv.Command, error) {
	if m.fresh == nil {
		m.fresh = map[consensus.ProposalID]int{}
	}
	if !as.Passed {
		m.fresh[as.ID]++
	}
	op := &kv.TxnOp{Then: make([]kv.Op, m.parts)}
	for i := range op.Then {
		op.Then[i].Range = &kv.RangeOp{}
	}
	return &kv.Command{Txn: op}, nil
}

func (m *partsMember) FirstResult(consensus.ProposalID) (kv.Result, bool) {
	return kv.Result{Revision: 2, Txn: &kv.TxnResult{}, Left: &kv.Left{}}, true
}

func (m *partsMember) KeepClient(consensus.MemberID) { m.kept++ }

// newPartsStream is a stream at a member that admits commands of so many parts.
func newPartsStream(t *testing.T, parts int) (s *Stream, m *partsMember, session uint64) {
	t.Helper()
	full := &fullMember{machine: fullMachine(t)}
	s, session = newTestStream(full)
	m = &partsMember{fullMember: full, parts: parts}
	s.all.options.Requests, s.all.options.Clients = m, m
	return s, m, session
}

// Ensure that the parts of commands that are proposed count with what the stream holds, and that they come back.
func TestStream_Go_countsParts(t *testing.T) {
	const parts = 1000
	s, m, session := newPartsStream(t, parts)
	var all []*quoratepb.Proposal
	for n := range uint64(1000) {
		all = append(all, put(session, n+1))
	}
	s.Take(proposes(all...))
	need := s.Go(t.Context())
	for ; need == Turn; need = s.Go(t.Context()) {
		s.Turned(nil, nil)
	}
	command, _ := m.Admit(t.Context(), nil, Asked{})
	bytes, most := int64(len(m.proposed)*command.Txn.Bytes()), s.all.options.Held.Limit()/2
	if need != Room || bytes > most || bytes < most/2 {
		t.Fatalf("got need %v after %d proposals of %d bytes, where %d may be held", need, len(m.proposed), bytes, most)
	}
	if s.command != nil || s.one.command != nil {
		t.Error("a command is kept whose parts are not counted")
	}
	for _, one := range m.proposed {
		one.Done.Complete(kv.Result{Revision: 2, Txn: &kv.TxnResult{}}, nil)
	}
	s.Next(t.Context(), time.Time{})
	s.Next(t.Context(), time.Time{})
	if need, kept := s.Go(t.Context()), m.kept; need != Turn || kept != 2 || s.command == nil {
		t.Errorf("got need %v once there is room; the client counted as heard %d times", need, kept)
	}
	for id, times := range m.fresh {
		if times != 1 {
			t.Errorf("%v was admitted %d times, and would take so many requests from what limits allow", id, times)
		}
	}
	if s.Close(); heldBytes(s.all) != 0 {
		t.Errorf("%d bytes are held afterwards", heldBytes(s.all))
	}
}

// Ensure that commands that are kept to read their results count until their answers are sent.
func TestStream_Go_countsPartsToRead(t *testing.T) {
	const parts = 1000
	s, _, session := newPartsStream(t, parts)
	var all []*quoratepb.Proposal
	for n := range uint64(1000) {
		again := put(session, n+1)
		again.Again = true
		all = append(all, again)
	}
	s.Take(proposes(all...))
	if need := s.Go(t.Context()); need != Done && need != Room {
		t.Fatalf("got need %v", need)
	}
	bytes := 0
	for i := range s.finished {
		bytes += commandBytes(s.finished[i].command)
	}
	if held := s.tab.Held(); bytes == 0 || int64(bytes) > held {
		t.Errorf("commands of %d bytes are kept, and %d are held", bytes, held)
	}
	if s.Close(); heldBytes(s.all) != 0 {
		t.Errorf("%d bytes are held afterwards", heldBytes(s.all))
	}
}

// Ensure that a stream that ends because nothing was read gives back at once what it held.
func TestStream_wait_givesBack(t *testing.T) {
	s, session := newTestStream(&fullMember{machine: fullMachine(t)})
	s.all.options.Bounds.UnreadBytes = 10 * resultBytes(&kv.Result{})
	for n := range uint64(20) {
		one := &proposal{stream: s, id: s.owner.Proposal(session, n+1)}
		s.unanswered[one] = struct{}{}
		s.tab.Take(one.held())
		s.all.options.Pending.Add(1)
		one.Complete(kv.Result{}, nil)
		s.Hear(consensus.Message{Verdicts: make([]consensus.Verdict, 1)})
	}
	if status.Code(s.over) != codes.ResourceExhausted || s.tab.Held() != 0 {
		t.Errorf("the stream ends with %v, and holds %d bytes", s.over, s.tab.Held())
	}
	s.Close()
}

// refusing reads the result of every second command.
type refusing struct {
	*fullMember
	asked int
	last  weak.Pointer[kv.TxnResult]
}

func (r *refusing) Complete(_ context.Context, _ *kv.Command, result *kv.Result) error {
	if r.asked++; r.asked%2 == 0 {
		return status.Error(codes.ResourceExhausted, "no memory")
	}
	large := readBack(10)
	r.last = weak.Make(large.Txn)
	result.Left, result.Txn = nil, large.Txn
	return nil
}

// Ensure that answers at hand do not wait for those that are read, that those come next, up to the first that is refused, and that
// nothing is kept of what was sent.
func TestStream_Next_atHandFirst(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	r := &refusing{fullMember: m}
	s.all.options.Requests = r
	s.Next(t.Context(), time.Time{})
	for n := range uint64(9) {
		one := &proposal{stream: s, id: s.owner.Proposal(session, n+1), kind: quoratepb.Proposal_KIND_TXN}
		result := kv.Result{Revision: 2, Txn: &kv.TxnResult{}}
		if n%3 != 0 {
			result.Left, one.command = &kv.Left{}, &kv.Command{Txn: &kv.TxnOp{}}
		}
		if s.enter(one) != goesOn {
			t.Fatal("no room")
		}
		one.Complete(result, nil)
	}
	var got string
	for range 5 {
		response, _, _ := s.Next(t.Context(), time.Time{})
		for _, a := range response.GetAnswers() {
			got += fmt.Sprintf("%d ", a.Sequence)
		}
		got += "| "
	}
	if want := "1 4 7 | 2 3 | 5 6 | 8 9 | | "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if runtime.GC(); r.last.Value() != nil {
		t.Error("the result of an answer that was sent is kept")
	}
	s.Close()
}

// closing ends the stream while it proposes.
type closing struct {
	*fullMember
	close func()
}

func (c *closing) ProposeAllFor(commands []clients.Proposed, refuse func(int, error)) {
	c.close()
	c.given = nil
	c.fullMember.ProposeAllFor(commands, refuse)
}

func (c *closing) ExpectFor(
	id consensus.ProposalID, command *kv.Command, done proposals.Completion,
) (consensus.Proposal, bool, error) {
	c.close()
	c.given = nil
	return c.fullMember.ExpectFor(id, command, done)
}

// Ensure that what is proposed, or offered, while its stream ends is given up.
func TestStream_Close_whileItProposes(t *testing.T) {
	for name, fast := range map[string]*quoratepb.TermConfig{"proposed": nil, "offered": {}} {
		t.Run(name, func(t *testing.T) {
			m := &closing{fullMember: &fullMember{machine: fullMachine(t)}}
			s, session := newTestStream(m.fullMember)
			s.all.options.Clients, m.close = m, s.Close
			request := proposes(put(session, 1))
			request.TermConfig = fast
			s.Take(request)
			for need := s.Go(t.Context()); need == Turn || need == Offer; need = s.Go(t.Context()) {
				if need == Turn {
					s.Turned(nil, nil)
				} else {
					s.Offering()
				}
			}
			if len(m.proposed) != 1 || len(m.given) != 1 || m.given[0] != m.proposed[0].ID {
				t.Errorf("proposed %v, given up %v", m.proposed, m.given)
			}
		})
	}
}

// readsSlowly has results of some bytes, and is asked for more while it reads them.
type readsSlowly struct {
	*fullMember
	meanwhile func()
}

func (r *readsSlowly) Complete(_ context.Context, _ *kv.Command, result *kv.Result) error {
	r.meanwhile()
	result.Left = nil
	return nil
}

// Ensure that what is being read for a message counts as unread, and as unanswered, until the message is there: reading may take
// seconds.
func TestStream_Next_countsWhatItReads(t *testing.T) {
	const most = 10
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	r := &readsSlowly{fullMember: m}
	s.all.options.Requests, s.all.options.Bounds.Proposals = r, most
	s.Next(t.Context(), time.Time{})
	sequence := uint64(0)
	enter := func() (entered int) {
		for {
			sequence++
			one := &proposal{stream: s, id: s.owner.Proposal(session, sequence), kind: quoratepb.Proposal_KIND_TXN,
				command: &kv.Command{Txn: &kv.TxnOp{}}}
			if s.enter(one) != goesOn {
				return entered
			}
			one.Complete(kv.Result{Revision: 2, Txn: &kv.TxnResult{}, Left: &kv.Left{}}, nil)
			entered++
		}
	}
	if entered := enter(); entered != most {
		t.Fatalf("%d proposals enter, want %d", entered, most)
	}
	unread := s.unread
	r.meanwhile = func() {
		if entered := enter(); entered != 0 || s.unread != unread {
			t.Errorf("%d proposals enter while answers are read, and %d bytes are unread of %d", entered, s.unread, unread)
		}
	}
	if response, _, _ := s.Next(t.Context(), time.Time{}); len(response.GetAnswers()) != most || s.unread != 0 {
		t.Errorf("%d answers, and %d bytes are unread", len(response.GetAnswers()), s.unread)
	}
	if entered := enter(); entered != most {
		t.Errorf("%d proposals enter once the answers are there, want %d", entered, most)
	}
	s.Close()
}
