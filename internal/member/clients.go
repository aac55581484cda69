package member

import (
	"context"
	"errors"

	"github.com/quorate/quorate/internal/clients"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/peercall"
	"github.com/quorate/quorate/internal/proposals"
)

func (m *Member) newClients() *clients.Clients {
	return clients.New(clients.Options{
		ID: m.ID(), Patience: m.options.ClientPatience, RequestTimeout: m.options.RequestTimeout,
		MaxRequestBytes: m.options.MaxRequestBytes,
		Stopping:        m.stopping, Clock: m.options.Clock, Logger: m.logger,
	}, clientPorts{m})
}

// clientPorts are what package clients sees of a member.
type clientPorts struct{ *Member }

func (p clientPorts) AwaitStart(ctx context.Context) error { return p.awaitStart(ctx) }

func (p clientPorts) Proposals() *proposals.Table {
	if !p.hasStarted() {
		return nil
	}
	return p.node.Proposals()
}

func (p clientPorts) IsMember(id consensus.MemberID) bool { return p.isMember(id) }

func (p clientPorts) Wake() { p.inbox.wake() }

func (p clientPorts) Send(messages []consensus.Message) { p.transport.Send(messages) }

func (p clientPorts) Background(f func()) { p.background(f) }

// Await is propose for a proposal that has an id.
func (p clientPorts) Await(
	ctx context.Context, id consensus.ProposalID, propose func(done proposals.Completion) error,
) (kv.Result, error) {
	w := &waiter{done: make(chan struct{}, 1)}
	if err := propose(w); err != nil {
		return kv.Result{}, err
	}
	begun := p.options.Clock.Now()
	select {
	case <-w.done:
		return w.result, w.err
	case <-ctx.Done():
		p.Abandon(id, w)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return kv.Result{}, p.timeoutError(begun)
		}
		return kv.Result{}, ctx.Err()
	case <-p.stopping.Done():
		p.Abandon(id, w)
		return kv.Result{}, ErrStopped
	}
}

// TellHeard asks the leader to take this member's word.
func (p clientPorts) TellHeard(leader consensus.MemberID, heard []consensus.MemberID) error {
	if leader == consensus.NoMember {
		return ErrNoLeader
	}
	ctx, cancel := context.WithTimeout(p.stopping, p.electionTimeout())
	defer cancel()
	_, err := peercall.Ask(ctx, p.caller, leader, &methodHeard, heard)
	return err
}

// noteHeard takes the word of another member about its clients.
func (m *Member) noteHeard(_ context.Context, heard []consensus.MemberID) (peercall.Nothing, error) {
	if m.Leader() != m.ID() {
		return peercall.Nothing{}, ErrNotLeader
	}
	m.Heard(heard)
	return peercall.Nothing{}, nil
}
