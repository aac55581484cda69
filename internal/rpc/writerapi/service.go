package writerapi

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// Clients is what the service asks of a member for its clients: *clients.Clients.
type Clients interface {
	ProposeAllFor(commands []clients.Proposed, refuse func(at int, why error))
	Abandon(id consensus.ProposalID, done proposals.Completion)
	FirstResult(id consensus.ProposalID) (kv.Result, bool)
	// Awaits reports whether a proposal has been proposed here and has no result yet.
	Awaits(id consensus.ProposalID) bool
	OpenClientSession(
		ctx context.Context, client consensus.MemberID, above uint64, keep []uint64, neighbours func(consensus.MemberID) bool,
	) (consensus.SessionID, error)
	RetireClientSession(session consensus.SessionID)
	KeepClient(client consensus.MemberID)
	ClientPatience() time.Duration

	ClusterState() clients.ClusterState
	ClusterStateChanged() <-chan struct{}
	ListenFor(client consensus.MemberID, l clients.Listener) (detach func(), err error)
	EncodeFor(id consensus.ProposalID, command *kv.Command) (consensus.Proposal, error)
	ExpectFor(
		id consensus.ProposalID, command *kv.Command, done proposals.Completion,
	) (proposal consensus.Proposal, leads bool, err error)
	Offer(ctx context.Context, client consensus.MemberID, message consensus.Message)
	OfferedBytes() int
}

// Member is what the service asks of a member about itself.
type Member interface {
	Learner() bool
	Machine() (machine *apply.Machine, release func())
}

// KV is etcd's KV service, whose requests and responses are in proposals and answers.
type KV interface {
	// Unsettled reports whether this member may know of other users than those who offer: nothing is recorded then.
	Unsettled(ctx context.Context) bool
	// Permit refuses who has not logged in.
	Permit(ctx context.Context) error
	// Admit reads and checks a request. One that is said to be proposed again is not held against the quota, so that the log
	// gives its answer. It gets ErrNoRoom where the log would not refuse it.
	Admit(ctx context.Context, r *quoratepb.Proposal) (*kv.Command, error)
	// Turn waits until an admitted command may be proposed. leave is to be called once it was applied, or failed; it is nil if
	// the command costs little. waits is called before it waits. CostsLittle tells that without waiting.
	Turn(ctx context.Context, command *kv.Command, waits func()) (leave func(), err error)
	CostsLittle(ctx context.Context, command *kv.Command) (bool, error)
	// Response is the response to what was applied, or to what the leader of the fast path has evaluated.
	Response(kind quoratepb.Proposal_Kind, result *kv.Result) wire.Encoder
	// Complete reads what a result needs beside what was kept of it.
	Complete(ctx context.Context, command *kv.Command, result *kv.Result) error
}

// Options say for whom the service proposes.
type Options struct {
	ClusterID, MemberID uint64
	Member              Member
	Clients             Clients
	KV                  KV
	MaxMessageBytes     int            // that a client may send
	Pending             *atomic.Int64  // proposals, counted with those of etcd's API
	Failed              *atomic.Uint64 // proposals that ended without a result, counted likewise
	Clock               env.Clock
	Held                *admission.Ledger // of what clients hold
}

// Service is the native Writer service.
type Service struct {
	quoratepb.UnsafeWriterServer
	options  Options
	register clientRegister
	unread   atomic.Uint64 // streams that ended because the client did not read the answers

	mostResultBytes int64 // of all clients, that may be kept: maxResultBytes
}

// New makes the service of a member.
func New(options Options) *Service {
	w := &Service{options: options, mostResultBytes: maxResultBytes}
	w.register.init(options.Clock, options.Clients)
	return w
}

// Propose serves the stream of one client.
func (w *Service) Propose(
	stream grpc.BidiStreamingServer[quoratepb.ProposeRequest, quoratepb.ProposeResponse],
) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	owner, err := clients.OwnerOf(first.Key, clients.Faults{})
	if err != nil {
		return errNoClient
	}
	if err := w.options.KV.Permit(stream.Context()); err != nil {
		return err
	}
	leave, err := w.register.enter(owner.ID, admission.CallerOf(stream.Context()))
	if err != nil {
		return err
	}
	defer leave()
	p := w.newStream(stream, owner)
	received := make(chan struct{})
	go func() {
		p.receive(first)
		close(received)
	}()
	err = p.send()
	p.close()
	go func() { // it ends with the call
		<-received
		if p.detach != nil {
			p.detach()
		}
	}()
	return err
}
