package writerapi

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/admission"
	"github.com/quorate/quorate/internal/clients"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/proposals"
)

// fullMember has a state machine, and knows of some proposals.
type fullMember struct {
	Clients
	KV
	machine *apply.Machine
	awaited map[consensus.ProposalID]bool
	turn    func() (leave func(), err error) // nil: all commands cost little
	given   []consensus.ProposalID           // up
	late    bool                             // a command that costs much waits for its turn
	kept    atomic.Int64                     // how often a client was heard
}

func (m *fullMember) Turn(_ context.Context, _ *kv.Command, waits func()) (leave func(), err error) {
	if m.turn == nil {
		return nil, nil
	}
	if m.late {
		waits()
	}
	return m.turn()
}

func (m *fullMember) ClientPatience() time.Duration { return time.Minute }
func (m *fullMember) KeepClient(consensus.MemberID) { m.kept.Add(1) }

func (m *fullMember) CostsLittle(context.Context, *kv.Command) (bool, error) {
	return m.turn == nil, nil
}

func (m *fullMember) Abandon(id consensus.ProposalID, _ proposals.Completion) {
	m.given = append(m.given, id)
}

func (m *fullMember) EncodeFor(id consensus.ProposalID, _ *kv.Command) (consensus.Proposal, error) {
	return consensus.Proposal{ID: id}, nil
}

func (m *fullMember) ClusterState() clients.ClusterState                                 { return clients.ClusterState{} }
func (m *fullMember) Learner() bool                                                      { return false }
func (m *fullMember) Machine() (*apply.Machine, func())                                  { return m.machine, func() {} }
func (m *fullMember) Awaits(id consensus.ProposalID) bool                                { return m.awaited[id] }
func (m *fullMember) Unsettled(context.Context) bool                                     { return false }
func (m *fullMember) Offer(_ context.Context, _ consensus.MemberID, _ consensus.Message) {}

func (m *fullMember) FirstResult(id consensus.ProposalID) (kv.Result, bool) {
	result, found, err := m.machine.Result(id)
	return result, found && err == nil
}

func (m *fullMember) Admit(context.Context, *quoratepb.Proposal) (*kv.Command, error) {
	return &kv.Command{Put: &kv.PutOp{Key: []byte("k")}}, nil
}

// fullService takes results of 70,000 bytes.
func fullService(kv KV, c Clients, m Member) *Service {
	return &Service{options: Options{Member: m, Clients: c, KV: kv, Pending: new(atomic.Int64), Failed: new(atomic.Uint64),
		Held: admission.NewLedger(8 << 20)}, mostResultBytes: 70_000}
}

type noNetwork struct {
	grpc.BidiStreamingServer[quoratepb.ProposeRequest, quoratepb.ProposeResponse]
}

func (noNetwork) Context() context.Context { return context.Background() }

// Ensure that a client which says of everything that it was sent before finds no more room for results than others, that its
// first results are still there, and that it is never told that an attempt which may have been first did nothing.
func TestStream_begin_again(t *testing.T) {
	rich, poor := clients.Owner{ID: 1}, clients.Owner{ID: 2}
	session := func(o clients.Owner) uint64 { return consensus.ClientSession(o.ID, uint64(o.ID)).Number }
	m := &fullMember{machine: fullMachine(t), awaited: map[consensus.ProposalID]bool{rich.Proposal(session(rich), 5002): true}}
	w := fullService(m, m, m)
	const goesOn = quoratepb.Answer_VERDICT_UNSPECIFIED
	for _, c := range []struct {
		name     string
		owner    clients.Owner
		sequence uint64
		again    bool
		want     quoratepb.Answer_Verdict
	}{
		{"new", rich, 5001, false, quoratepb.Answer_VERDICT_REFUSED},
		{"said to be again", rich, 5001, true, quoratepb.Answer_VERDICT_AGAIN},
		{"under way here", rich, 5002, true, goesOn},
		{"executed", rich, 17, true, quoratepb.Answer_VERDICT_APPLIED},
		{"new, of a client of which little is kept", poor, 1, false, goesOn},
		{"again, of a client of which little is kept", poor, 2, true, goesOn},
	} {
		p := w.newStream(noNetwork{}, c.owner)
		r := &quoratepb.Proposal{
			Session: session(c.owner), Sequence: c.sequence, Kind: quoratepb.Proposal_KIND_PUT, Again: c.again}
		command, _, err := p.begin(r, p.handOver)
		if err != nil || (command != nil) != (c.want == goesOn) {
			t.Errorf("%s: got %v, %v", c.name, command, err)
		}
		if command != nil || len(p.finished) != 1 {
			continue
		}
		if f := &p.finished[0]; f.result.Put != nil {
			if c.want != quoratepb.Answer_VERDICT_APPLIED {
				t.Errorf("%s: got a result", c.name)
			}
		} else if a := w.proposalAnswer(context.Background(), f); a.Verdict != c.want || codes.Code(a.Code) != codes.ResourceExhausted {
			t.Errorf("%s: got %v, want %v", c.name, a, c.want)
		}
		// A voter holds no record of what would be refused.
		q := w.newStream(noNetwork{}, c.owner)
		q.record(&quoratepb.ProposeRequest{TermConfig: &quoratepb.TermConfig{}, Records: []*quoratepb.Proposal{r}})
		if q.heard.verdicts != 1 {
			t.Errorf("%s: the record was taken", c.name)
		}
	}
}

// Ensure that a command which costs much is recorded by no voter, that its turn ends once it was applied, also if the stream has
// ended before, and that one which gets no turn is refused, unless it may have been sent before.
func TestStream_begin_turn(t *testing.T) {
	owner := clients.Owner{ID: 2}
	session := consensus.ClientSession(owner.ID, 2).Number
	m := &fullMember{machine: fullMachine(t)}
	w := fullService(m, m, m)
	stream := func() *proposeStream { return w.newStream(noNetwork{}, owner) }
	r := &quoratepb.Proposal{Session: session, Sequence: 1, Kind: quoratepb.Proposal_KIND_PUT}
	left := 0
	m.turn = func() (func(), error) { return func() { left++ }, nil }
	p := stream()
	command, one, err := p.begin(r, p.handOver)
	if command == nil || err != nil || left != 0 {
		t.Fatalf("got %v, %v, and the turn ended %d times", command, err, left)
	}
	p.close()
	if left != 0 || len(m.given) > 0 {
		t.Errorf("with the stream the turn ended %d times, and %v was given up", left, m.given)
	}
	one.Complete(kv.Result{}, nil)
	one.Complete(kv.Result{}, nil)
	if left != 1 {
		t.Errorf("the turn ended %d times", left)
	}
	p = stream()
	p.record(&quoratepb.ProposeRequest{TermConfig: &quoratepb.TermConfig{}, Records: []*quoratepb.Proposal{r}})
	if p.heard.verdicts != 1 || p.heard.messages[0].Verdicts[0].Refusal != refusedHere {
		t.Errorf("the record was taken: %+v", p.heard.messages)
	}
	m.turn = func() (func(), error) { return nil, errCostly }
	for again, want := range map[bool]quoratepb.Answer_Verdict{
		false: quoratepb.Answer_VERDICT_REFUSED, true: quoratepb.Answer_VERDICT_AGAIN,
	} {
		p := stream()
		r.Again = again
		if command, _, err := p.begin(r, p.handOver); command != nil || err != nil || len(p.finished) != 1 {
			t.Fatalf("without a turn: got %v, %v", command, err)
		}
		if a := w.proposalAnswer(context.Background(), &p.finished[0]); a.Verdict != want {
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
