package member

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/peercall"
	"github.com/quorate/quorate/internal/member/proposals"
)

// clientPorts implement, for a member, the port of package clients.
type clientPorts struct {
	leader   *lanes.KnownLeader
	stores   *datadir.Stores
	requests *requests
	handler  *PeerHandler
	peers    *peers
	caller   *peercall.Caller
	life     *lifecycle
	patience time.Duration // timeout of a report to the leader
}

func newClients(o *Options, ports *clientPorts) *clients.Clients {
	return clients.New(clients.Options{
		ID: ports.leader.Self(), Patience: o.ClientPatience, RequestTimeout: o.RequestTimeout,
		SessionBytes: o.SessionBytes, OfferedBytes: o.OpenBytes / 2,
		Stopping: ports.life.stopping, Clock: o.Clock, Logger: o.Logger,
	}, ports)
}

func (p *clientPorts) Leader() consensus.MemberID { return p.leader.Leader() }

func (p *clientPorts) Machine() (machine *apply.Machine, release func()) { return p.stores.Machine() }

func (p *clientPorts) Propose(ctx context.Context, command *kv.Command) (kv.Result, error) {
	return p.requests.command(ctx, command)
}

func (p *clientPorts) ReadIndex(ctx context.Context) error { return p.requests.readIndex(ctx) }

func (p *clientPorts) Receive(message consensus.Message) bool {
	return p.handler.admit([]consensus.Message{message}) > 0
}

func (p *clientPorts) AwaitStart(ctx context.Context) error { return p.requests.awaitStart(ctx) }

func (p *clientPorts) Proposals() *proposals.Table { return p.requests.Proposals() }

func (p *clientPorts) EncodeCommand(command *kv.Command) ([]byte, error) {
	return p.requests.Encode(command)
}

func (p *clientPorts) Wake() { p.requests.Wake() }

func (p *clientPorts) Send(messages []consensus.Message) { p.peers.transport.Send(messages) }

func (p *clientPorts) Background(f func()) { p.life.background(f) }

func (p *clientPorts) Await(
	ctx context.Context, id consensus.ProposalID, propose func(done proposals.Completion) error,
) (kv.Result, error) {
	return p.requests.await(ctx, id, propose)
}

// TellHeard reports to the leader the native clients from which this member received something lately.
func (p *clientPorts) TellHeard(leader consensus.MemberID, heard []consensus.MemberID) error {
	if leader == consensus.NoMember {
		return ErrNoLeader
	}
	ctx, cancel := context.WithTimeout(p.life.stopping, p.patience)
	defer cancel()
	_, err := peercall.Ask(ctx, p.caller, leader, &methodHeard, heard)
	return err
}

// serve takes the reports of other members about their clients, while this member leads.
func (p *clientPorts) serve(t *peercall.Table, c *clients.Clients) {
	peercall.Serve(t, &methodHeard, func(_ context.Context, heard []consensus.MemberID) (peercall.Nothing, error) {
		if !p.leader.Leads() {
			return peercall.Nothing{}, ErrNotLeader
		}
		c.Heard(heard)
		return peercall.Nothing{}, nil
	})
}
