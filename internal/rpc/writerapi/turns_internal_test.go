package writerapi

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/clients"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/proposals"
)

// leading is a member that leads: what is offered is applied at once. One command at a time has the turn.
type leading struct {
	fullMember
	mu     sync.Mutex
	expect map[consensus.ProposalID]proposals.Completion
	busy   chan struct{}
}

func (l *leading) ListenFor(consensus.MemberID, clients.Listener) (func(), error) {
	return func() {}, nil
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

func turnStream(t *testing.T, kv KV, c Clients, m Member) (p *proposeStream, session uint64) {
	t.Helper()
	owner := clients.Owner{ID: 2}
	p = fullService(kv, c, m).newStream(noNetwork{}, owner)
	return p, consensus.ClientSession(owner.ID, 2).Number
}

// Ensure that of two commands in one offer, which cost much, the first is offered while the second waits for its turn.
func TestStream_fast_offersBeforeItWaits(t *testing.T) {
	m := &leading{fullMember: fullMember{machine: fullMachine(t)}, expect: map[consensus.ProposalID]proposals.Completion{}}
	synctest.Test(t, func(t *testing.T) {
		m.busy = make(chan struct{}, 1)
		p, session := turnStream(t, m, m, m)
		var done atomic.Bool
		go func() {
			err := p.fast(&quoratepb.ProposeRequest{TermConfig: &quoratepb.TermConfig{}, Proposals: []*quoratepb.Proposal{
				{Session: session, Sequence: 1, Kind: quoratepb.Proposal_KIND_PUT},
				{Session: session, Sequence: 2, Kind: quoratepb.Proposal_KIND_PUT},
			}})
			done.Store(err == nil)
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
func TestStream_fast_offersBeforeItWaitsForRoom(t *testing.T) {
	m := &leading{fullMember: fullMember{machine: fullMachine(t)}, expect: map[consensus.ProposalID]proposals.Completion{}}
	synctest.Test(t, func(t *testing.T) {
		m.busy = make(chan struct{}, 2)
		p, session := turnStream(t, m, m, m)
		large := make([]byte, p.writer.options.Held.Limit()*3/8)
		var done atomic.Bool
		go func() {
			err := p.fast(&quoratepb.ProposeRequest{TermConfig: &quoratepb.TermConfig{}, Proposals: []*quoratepb.Proposal{
				{Session: session, Sequence: 1, Kind: quoratepb.Proposal_KIND_PUT, Request: large},
				{Session: session, Sequence: 2, Kind: quoratepb.Proposal_KIND_PUT, Request: large},
			}})
			done.Store(err == nil)
		}()
		synctest.Wait()
		p.mu.Lock()
		answered := len(p.finished)
		p.mu.Unlock()
		if answered != 2 || !done.Load() {
			t.Errorf("%d are answered: the second waits for the room of the first, which is not offered", answered)
		}
		p.close()
	})
}

// Ensure that a command whose stream ends while it waits for its turn is not proposed, and gives the turn back.
func TestStream_begin_endedStream(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	synctest.Test(t, func(t *testing.T) {
		p, session := turnStream(t, m, m, m)
		var left atomic.Int64
		in, comes, begun := make(chan struct{}), make(chan struct{}), make(chan *kv.Command, 1)
		m.turn = func() (func(), error) {
			close(in)
			<-comes
			return func() { left.Add(1) }, nil
		}
		go func() {
			r := &quoratepb.Proposal{Session: session, Sequence: 1, Kind: quoratepb.Proposal_KIND_PUT}
			command, _, _ := p.begin(r, p.handOver)
			begun <- command
		}()
		<-in
		p.close()
		close(comes)
		if command := <-begun; command != nil || left.Load() != 1 {
			t.Errorf("it is to be proposed: %v, and the turn was given back %d times", command != nil, left.Load())
		}
	})
}

// Ensure that the sessions of a client are kept while its stream is not read because a command of it waits for its turn, and not
// longer.
func TestStream_begin_keepsClient(t *testing.T) {
	m := &fullMember{machine: fullMachine(t), late: true}
	synctest.Test(t, func(t *testing.T) {
		p, session := turnStream(t, m, m, m)
		m.turn = func() (func(), error) {
			<-time.After(5 * m.ClientPatience())
			return func() {}, nil
		}
		r := &quoratepb.Proposal{Session: session, Sequence: 1, Kind: quoratepb.Proposal_KIND_PUT}
		if _, _, err := p.begin(r, p.handOver); err != nil {
			t.Fatal(err)
		}
		kept := m.kept.Load()
		<-time.After(m.ClientPatience())
		if later := m.kept.Load(); kept < 10 || later != kept {
			t.Errorf("the client was heard %d times in five times its patience, and %d times after its turn", kept, later-kept)
		}
	})
}

// Ensure that a costly command gives its turn back whose stream ends while the next one of its message is looked at: no other
// goroutine would, and other costly commands would wait for ever.
func TestStream_propose_endsBetween(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	p, session := turnStream(t, m, m, m)
	var left atomic.Int64
	calls := 0
	m.turn = func() (func(), error) {
		if calls++; calls == 1 {
			return func() { left.Add(1) }, nil
		}
		p.close()
		return nil, nil
	}
	var all []*quoratepb.Proposal
	for n := range uint64(3) {
		all = append(all, &quoratepb.Proposal{Session: session, Sequence: n + 1, Kind: quoratepb.Proposal_KIND_PUT})
	}
	if err := p.propose(all); err == nil || left.Load() != 1 || len(p.ready) > 0 {
		t.Errorf("the message ends with %v, %d turns were given back, and %d commands wait", err, left.Load(), len(p.ready))
	}
}
