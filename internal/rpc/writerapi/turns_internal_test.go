package writerapi

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/apply/applytest"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/member/clients/streams"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/nativeclient"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// fullMember has a state machine, and gives turns.
type fullMember struct {
	Clients
	KV
	machine  *apply.Machine
	turn     func() (leave func(), err error) // nil: all commands cost little
	late     bool                             // a command that costs much waits for its turn
	kept     atomic.Int64                     // how often a client was heard
	proposed atomic.Int64                     // commands
	last     clients.Proposed                 // of these
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

func (m *fullMember) ClusterState() clients.ClusterState                                 { return clients.ClusterState{} }
func (m *fullMember) Learner() bool                                                      { return false }
func (m *fullMember) Machine() (*apply.Machine, func())                                  { return m.machine, func() {} }
func (m *fullMember) Unsettled(context.Context) bool                                     { return false }
func (m *fullMember) Permit(context.Context) error                                       { return nil }
func (m *fullMember) Offer(_ context.Context, _ consensus.MemberID, _ consensus.Message) {}
func (m *fullMember) Abandon(consensus.ProposalID, proposals.Completion)                 {}

func (m *fullMember) Response(quoratepb.Proposal_Kind, *kv.Result) wire.Encoder {
	return nil
}

func (m *fullMember) ListenFor(consensus.MemberID, clients.Listener) (func(), error) {
	return func() {}, nil
}

func (m *fullMember) ProposeAllFor(commands []clients.Proposed, _ func(int, error)) {
	m.proposed.Add(int64(len(commands)))
	m.last = commands[len(commands)-1]
}

func (m *fullMember) Admit(context.Context, *quoratepb.Proposal, streams.Asked) (*kv.Command, error) {
	return &kv.Command{Put: &kv.PutOp{Key: []byte("k")}}, nil
}

func openMachine(t *testing.T) *apply.Machine {
	t.Helper()
	return applytest.Open(t, 1, consensus.Config{})
}

type noNetwork struct {
	grpc.BidiStreamingServer[quoratepb.ProposeRequest, quoratepb.ProposeResponse]
}

func (noNetwork) Context() context.Context { return context.Background() }

// openStream opens the stream of a client.
func openStream(
	t *testing.T, kv KV, c Clients, m Member, network grpc.BidiStreamingServer[quoratepb.ProposeRequest, quoratepb.ProposeResponse],
) (p *proposeStream, session uint64) {
	t.Helper()
	w := New(Options{Member: m, Clients: c, KV: kv, Pending: new(atomic.Int64), Failed: new(atomic.Uint64),
		Held: admission.NewLedger(held), Clock: env.WallClock{}})
	p = newStream(w, network)
	var err error
	if p.stream, err = w.streams.Begin(t.Context(), make([]byte, quoratepb.ClientKeyBytes), admission.Caller{}, p); err != nil {
		t.Fatal(err)
	}
	return p, consensus.ClientSession(p.stream.Owner().ID, 2).Number
}

// held is what clients may hold.
const held = 8 << 20

// puts returns so many requests with so many bytes.
func puts(session uint64, count, bytes int) []*quoratepb.Proposal {
	var all []*quoratepb.Proposal
	for n := range uint64(count) {
		all = append(all, &quoratepb.Proposal{
			Session: session, Sequence: n + 1, Kind: quoratepb.Proposal_KIND_PUT, Request: make([]byte, bytes),
		})
	}
	return all
}

// leading is a member that leads: what is offered is applied at once. One command at a time has the turn.
type leading struct {
	fullMember
	mu     sync.Mutex
	expect map[consensus.ProposalID]proposals.Completion
	busy   chan struct{}
}

func (l *leading) ExpectFor(
	id consensus.ProposalID, _ *kv.Command, done proposals.Completion,
) (consensus.Proposal, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expect[id] = done
	return consensus.Proposal{ID: id}, true, nil
}

func (l *leading) Offer(_ context.Context, _ consensus.MemberID, m consensus.Message) {
	for _, p := range m.Proposals {
		l.mu.Lock()
		done := l.expect[p.ID]
		l.mu.Unlock()
		done.Complete(kv.Result{Revision: 2, Put: &kv.PutResult{}}, nil)
	}
}

func (l *leading) Turn(_ context.Context, _ *kv.Command, waits func()) (func(), error) {
	waits()
	l.busy <- struct{}{}
	return func() { <-l.busy }, nil
}

func newLeading(t *testing.T) *leading {
	return &leading{fullMember: fullMember{machine: openMachine(t)}, expect: map[consensus.ProposalID]proposals.Completion{}}
}

// Ensure that of two commands in one offer, which cost much, the first is offered while the second waits for its turn.
func TestStream_take_offersBeforeItWaits(t *testing.T) {
	m := newLeading(t)
	synctest.Test(t, func(t *testing.T) {
		m.busy = make(chan struct{}, 1)
		p, session := openStream(t, m, m, m, noNetwork{})
		var done atomic.Bool
		go func() {
			done.Store(p.take(&quoratepb.ProposeRequest{TermConfig: &quoratepb.TermConfig{}, Proposals: puts(session, 2, 0)}))
		}()
		if synctest.Wait(); !done.Load() {
			t.Error("the second waits for the turn of the first, which is not offered")
			<-m.busy
			synctest.Wait()
		}
	})
}

// Ensure that of two commands in one offer, for which the member has no memory together, the first is offered while the second
// waits for room: room comes of the answer to the first.
func TestStream_take_offersBeforeItWaitsForRoom(t *testing.T) {
	m := newLeading(t)
	synctest.Test(t, func(t *testing.T) {
		m.busy = make(chan struct{}, 2)
		p, session := openStream(t, m, m, m, noNetwork{})
		var done atomic.Bool
		go func() {
			done.Store(p.take(&quoratepb.ProposeRequest{
				TermConfig: &quoratepb.TermConfig{}, Proposals: puts(session, 2, held*3/8)}))
		}()
		synctest.Wait()
		if waiting := p.writer.options.Pending.Load(); waiting != 0 || !done.Load() {
			t.Errorf("%d wait: the second for the room of the first, which is not offered", waiting)
		}
		p.stream.Close()
		synctest.Wait()
	})
}

// Ensure that a command whose stream ends while it waits for its turn is not proposed, and gives the turn back.
func TestStream_take_endedStream(t *testing.T) {
	m := &fullMember{machine: openMachine(t)}
	synctest.Test(t, func(t *testing.T) {
		p, session := openStream(t, m, m, m, noNetwork{})
		var left atomic.Int64
		in, comes, taken := make(chan struct{}), make(chan struct{}), make(chan struct{})
		m.turn = func() (func(), error) {
			close(in)
			<-comes
			return func() { left.Add(1) }, nil
		}
		go func() {
			p.take(&quoratepb.ProposeRequest{Proposals: puts(session, 1, 0)})
			close(taken)
		}()
		<-in
		p.stream.Close()
		close(comes)
		if <-taken; m.proposed.Load() != 0 || left.Load() != 1 {
			t.Errorf("%d commands are proposed, and the turn was given back %d times", m.proposed.Load(), left.Load())
		}
	})
}

// Ensure that the sessions of a client are kept while its stream is not read because a command of it waits for its turn, and not
// longer.
func TestStream_take_keepsClient(t *testing.T) {
	m := &fullMember{machine: openMachine(t), late: true}
	synctest.Test(t, func(t *testing.T) {
		p, session := openStream(t, m, m, m, noNetwork{})
		m.turn = func() (func(), error) {
			<-time.After(5 * m.ClientPatience())
			return func() {}, nil
		}
		if !p.take(&quoratepb.ProposeRequest{Proposals: puts(session, 1, 0)}) || m.proposed.Load() != 1 {
			t.Fatal("it is not proposed")
		}
		kept := m.kept.Load()
		<-time.After(m.ClientPatience())
		if later := m.kept.Load(); kept < 10 || later != kept {
			t.Errorf("the client was heard %d times in five times its patience, and %d times after its turn", kept, later-kept)
		}
	})
}

// Ensure that a client hears of the member while its stream is not read, so often that it does not take the stream for dead.
func TestStream_take_reminds(t *testing.T) {
	m := &fullMember{machine: openMachine(t), late: true}
	synctest.Test(t, func(t *testing.T) {
		p, session := openStream(t, m, m, m, noNetwork{})
		p.stream.Next(t.Context(), time.Now()) // the first status
		m.turn = func() (func(), error) {
			for range 10 {
				select {
				case <-p.ready:
				case <-time.After(nativeclient.DeafAfter):
				}
				if response, _, _ := p.stream.Next(t.Context(), time.Now()); response.GetStatus() == nil || response.Status.Ping != 0 {
					t.Errorf("the client hears %v", response)
				}
			}
			return func() {}, nil
		}
		if !p.take(&quoratepb.ProposeRequest{Proposals: puts(session, 1, 0)}) || m.proposed.Load() != 1 {
			t.Fatal("it is not proposed")
		}
	})
}

// Ensure that a costly command whose stream ends while the next one of its message is looked at has been proposed, and gives its
// turn back when it has been applied, and not before.
func TestStream_take_endsBetween(t *testing.T) {
	m := &fullMember{machine: openMachine(t)}
	p, session := openStream(t, m, m, m, noNetwork{})
	var left atomic.Int64
	calls := 0
	m.turn = func() (func(), error) {
		if calls++; calls == 1 {
			return func() { left.Add(1) }, nil
		}
		p.stream.Close()
		return nil, nil
	}
	if p.take(&quoratepb.ProposeRequest{Proposals: puts(session, 3, 0)}) || left.Load() != 0 || m.proposed.Load() != 1 {
		t.Errorf("%d turns were given back, and %d commands are proposed", left.Load(), m.proposed.Load())
	}
	if m.last.Done.Complete(kv.Result{Put: &kv.PutResult{}}, nil); left.Load() != 1 {
		t.Errorf("%d turns were given back once the command was applied", left.Load())
	}
}

// Ensure that a stream that waits for room, of answers that nobody takes, ends.
func TestStream_take_endsForWantOfRoom(t *testing.T) {
	m := &fullMember{machine: openMachine(t)}
	synctest.Test(t, func(t *testing.T) {
		p, session := openStream(t, m, m, m, noNetwork{})
		taken := make(chan bool, 1)
		go func() { taken <- p.take(&quoratepb.ProposeRequest{Proposals: puts(session, 2, held*3/8)}) }()
		synctest.Wait()
		if m.proposed.Load() != 1 || len(taken) > 0 {
			t.Errorf("%d commands are proposed, and the second waits: %v", m.proposed.Load(), len(taken) == 0)
		}
		p.stream.Close()
		if <-taken {
			t.Error("the stream goes on")
		}
	})
}
