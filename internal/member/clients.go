package member

import (
	"context"

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

func (p clientPorts) AwaitStart(ctx context.Context) error { return p.requests.awaitStart(ctx) }

func (p clientPorts) Proposals() *proposals.Table { return p.requests.proposals() }

func (p clientPorts) IsMember(id consensus.MemberID) bool { return p.isMember(id) }

func (p clientPorts) Wake() { p.inbox.wake() }

func (p clientPorts) Send(messages []consensus.Message) { p.peers.transport.Send(messages) }

func (p clientPorts) Background(f func()) { p.background(f) }

func (p clientPorts) Await(
	ctx context.Context, id consensus.ProposalID, propose func(done proposals.Completion) error,
) (kv.Result, error) {
	return p.requests.await(ctx, id, propose)
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
	if !m.leads() {
		return peercall.Nothing{}, ErrNotLeader
	}
	m.Heard(heard)
	return peercall.Nothing{}, nil
}
