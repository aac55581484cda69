package streams

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/member/proposals"
)

// fullMember has a state machine, and knows of some proposals.
type fullMember struct {
	Clients
	Requests
	machine  *apply.Machine
	awaited  map[consensus.ProposalID]bool
	costly   bool                   // commands cost too much to be recorded
	given    []consensus.ProposalID // up
	proposed []clients.Proposed
	state    clients.ClusterState
	denies   error
}

func (m *fullMember) ClientPatience() time.Duration                          { return time.Minute }
func (m *fullMember) KeepClient(consensus.MemberID)                          {}
func (m *fullMember) ClusterState() clients.ClusterState                     { return m.state }
func (m *fullMember) Learner() bool                                          { return false }
func (m *fullMember) Machine() (*apply.Machine, func())                      { return m.machine, func() {} }
func (m *fullMember) Awaits(id consensus.ProposalID) bool                    { return m.awaited[id] }
func (m *fullMember) Unsettled(context.Context) bool                         { return false }
func (m *fullMember) Permit(context.Context) error                           { return m.denies }
func (m *fullMember) Wire(err error) error                                   { return err }
func (m *fullMember) CostsLittle(context.Context, *kv.Command) (bool, error) { return !m.costly, nil }

func (m *fullMember) Response(quoratepb.Proposal_Kind, *kv.Result) []byte { return []byte("response") }

func (m *fullMember) ListenFor(consensus.MemberID, clients.Listener) (detach func(), err error) {
	return func() {}, nil
}

func (m *fullMember) Abandon(id consensus.ProposalID, _ proposals.Completion) {
	m.given = append(m.given, id)
}

func (m *fullMember) EncodeFor(id consensus.ProposalID, _ *kv.Command) (consensus.Proposal, error) {
	return consensus.Proposal{ID: id}, nil
}

func (m *fullMember) FirstResult(id consensus.ProposalID) (kv.Result, bool) {
	result, found, err := m.machine.Result(id)
	return result, found && err == nil
}

func (m *fullMember) ProposeAllFor(commands []clients.Proposed, _ func(int, error)) {
	m.proposed = append(m.proposed, commands...)
}

func (m *fullMember) ExpectFor(
	id consensus.ProposalID, command *kv.Command, done proposals.Completion,
) (consensus.Proposal, bool, error) {
	m.proposed = append(m.proposed, clients.Proposed{ID: id, Command: command, Done: done})
	return consensus.Proposal{ID: id}, true, nil
}

func (m *fullMember) Admit(context.Context, *quoratepb.Proposal, Asked) (*kv.Command, error) {
	return &kv.Command{Put: &kv.PutOp{Key: []byte("k")}}, nil
}

// counter is a driver that counts what it is told.
type counter struct {
	ready, room int
	opens       [][]uint64
}

func (c *counter) Ready()                       { c.ready++ }
func (c *counter) Room()                        { c.room++ }
func (c *counter) Open(_ uint64, keep []uint64) { c.opens = append(c.opens, keep) }

// fullStreams takes results of 70,000 bytes.
func fullStreams(m *fullMember) *Streams {
	bounds := DefaultBounds()
	bounds.ResultBytes = 70_000
	return New(Options{Member: m, Clients: m, Requests: m, Pending: new(atomic.Int64), Failed: new(atomic.Uint64),
		Held: admission.NewLedger(8 << 20), Bounds: bounds, SessionLength: clients.ClientSessionLength, Clock: env.WallClock{}})
}

// newTestStream is the stream of client 2, in whose session little is kept.
func newTestStream(m *fullMember) (s *Stream, session uint64) {
	owner := clients.Owner{ID: 2}
	return fullStreams(m).newStream(owner, "", &counter{}), consensus.ClientSession(owner.ID, 2).Number
}

func records(r *quoratepb.Proposal) *quoratepb.ProposeRequest {
	return &quoratepb.ProposeRequest{TermConfig: &quoratepb.TermConfig{}, Records: []*quoratepb.Proposal{r}}
}

func proposes(all ...*quoratepb.Proposal) *quoratepb.ProposeRequest {
	return &quoratepb.ProposeRequest{Proposals: all}
}

// Ensure that a client which says of everything that it was sent before finds no more room for results than others, that its
// first results are still there, and that it is never told that an attempt which may have been first did nothing.
func TestStream_Go_again(t *testing.T) {
	rich, poor := clients.Owner{ID: 1}, clients.Owner{ID: 2}
	session := func(o clients.Owner) uint64 { return consensus.ClientSession(o.ID, uint64(o.ID)).Number }
	m := &fullMember{machine: fullMachine(t), awaited: map[consensus.ProposalID]bool{rich.Proposal(session(rich), 5002): true}}
	all := fullStreams(m)
	const passes = quoratepb.Answer_VERDICT_UNSPECIFIED
	for _, c := range []struct {
		name     string
		owner    clients.Owner
		sequence uint64
		again    bool
		want     quoratepb.Answer_Verdict
	}{
		{"new", rich, 5001, false, quoratepb.Answer_VERDICT_REFUSED},
		{"said to be again", rich, 5001, true, quoratepb.Answer_VERDICT_AGAIN},
		{"under way here", rich, 5002, true, passes},
		{"executed", rich, 17, true, quoratepb.Answer_VERDICT_APPLIED},
		{"new, of a client of which little is kept", poor, 1, false, passes},
		{"again, of a client of which little is kept", poor, 2, true, passes},
	} {
		s := all.newStream(c.owner, "", &counter{})
		r := &quoratepb.Proposal{
			Session: session(c.owner), Sequence: c.sequence, Kind: quoratepb.Proposal_KIND_PUT, Again: c.again}
		s.Take(proposes(r))
		need := s.Go(t.Context())
		if want := map[bool]Need{true: Turn, false: Done}[c.want == passes]; need != want {
			t.Errorf("%s: got need %v, want %v", c.name, need, want)
		}
		if need == Turn || len(s.finished) != 1 {
			continue
		}
		if f := &s.finished[0]; f.result.Put != nil {
			if c.want != quoratepb.Answer_VERDICT_APPLIED {
				t.Errorf("%s: got a result", c.name)
			}
		} else if a := all.proposalAnswer(t.Context(), f); a.Verdict != c.want || codes.Code(a.Code) != codes.ResourceExhausted {
			t.Errorf("%s: got %v, want %v", c.name, a, c.want)
		}
		// A voter holds no record of what would be refused.
		q := all.newStream(c.owner, "", &counter{})
		q.Take(records(r))
		if need := q.Go(t.Context()); need != Done || q.heard.verdicts != 1 {
			t.Errorf("%s: the record was taken", c.name)
		}
	}
}

// Ensure that a command which costs much is recorded by no voter, that its turn ends once it was applied, also if the stream has
// ended before, and that one which gets no turn is refused, unless it may have been sent before.
func TestStream_Turned(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	r := &quoratepb.Proposal{Session: session, Sequence: 1, Kind: quoratepb.Proposal_KIND_PUT}
	s.Take(proposes(r))
	if need := s.Go(t.Context()); need != Turn || s.Turning() == nil {
		t.Fatalf("got need %v, want a turn", need)
	}
	left, one := 0, s.one
	s.Turned(func() { left++ }, nil)
	s.Close()
	if left != 0 || len(m.given) > 0 {
		t.Errorf("with the stream the turn ended %d times, and %v was given up", left, m.given)
	}
	one.Complete(kv.Result{}, nil)
	one.Complete(kv.Result{}, nil)
	if left != 1 {
		t.Errorf("the turn ended %d times", left)
	}
	m.costly = true
	s, _ = newTestStream(m)
	s.Take(records(r))
	if need := s.Go(t.Context()); need != Done || s.heard.verdicts != 1 || s.heard.messages[0].Verdicts[0].Refusal != refusedHere {
		t.Errorf("the record was taken: %+v", s.heard.messages)
	}
	for again, want := range map[bool]quoratepb.Answer_Verdict{
		false: quoratepb.Answer_VERDICT_REFUSED, true: quoratepb.Answer_VERDICT_AGAIN,
	} {
		s, _ := newTestStream(m)
		r.Again = again
		s.Take(proposes(r))
		s.Go(t.Context())
		s.Turned(nil, errCostly)
		if need := s.Go(t.Context()); need != Done || len(s.finished) != 1 {
			t.Fatalf("without a turn: got need %v", need)
		}
		if a := s.all.proposalAnswer(t.Context(), &s.finished[0]); a.Verdict != want {
			t.Errorf("without a turn, again %v: got %v, want %v", again, a, want)
		}
	}
}

// fullMachine has sessions of clients 1 and 2, and 5,000 results of the first.
func fullMachine(t *testing.T) *apply.Machine {
	m := openMachine(t)
	var entries []consensus.Entry
	add := func(id consensus.ProposalID, cmd kv.Command) {
		entries = append(entries, consensus.Entry{Index: consensus.Index(len(entries) + 1), Term: 1,
			Kind: consensus.EntryCommand, Proposal: id, Payload: cmd.Append(nil)})
	}
	for client := uint64(1); client <= 2; client++ {
		s := consensus.ClientSession(consensus.MemberID(client), client)
		add(consensus.ProposalID{Session: s}, kv.Command{SessionOpen: &kv.SessionOpenOp{Member: client, Number: s.Number}})
	}
	for i := range uint64(5000) {
		id := consensus.ProposalID{Session: consensus.ClientSession(1, 1), Sequence: i + 1}
		add(id, kv.Command{Put: &kv.PutOp{Key: fmt.Append(nil, i)}})
	}
	for i := range entries { // each by itself, as the log brings them
		if _, err := m.Apply(entries[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return m
}
