package writerapi

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/member/clients/streams"
	"github.com/quorate/quorate/internal/rpc/etcderr"
	"github.com/quorate/quorate/internal/rpc/metrics"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// Clients is what the service asks of a member for its clients: *clients.Clients. A method with a context may wait.
type Clients interface {
	streams.Clients
	OpenClientSession(
		ctx context.Context, client consensus.MemberID, above uint64, keep []uint64, neighbours func(consensus.MemberID) bool,
	) (consensus.SessionID, error)
	Offer(ctx context.Context, client consensus.MemberID, message consensus.Message)
	ClusterStateChanged() <-chan struct{}
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
	Admit(ctx context.Context, r *quoratepb.Proposal, as streams.Asked) (*kv.Command, error)
	// Turn waits until an admitted command may be proposed. leave is to be called once it was applied, or failed; it is nil if
	// the command costs little. waits is called before it waits. CostsLittle tells that without waiting.
	Turn(ctx context.Context, command *kv.Command, waits func()) (leave func(), err error)
	CostsLittle(ctx context.Context, command *kv.Command) (bool, error)
	// Response is the response to what was applied, or to what the leader of the fast path has evaluated.
	Response(kind quoratepb.Proposal_Kind, result *kv.Result) wire.Encoder
	// Complete reads what a result needs beside what was kept of it.
	Complete(ctx context.Context, command *kv.Command, result *kv.Result) error
}

var (
	// ErrDenied is wrapped by what KV.Admit returns if the client may not do what it asks for.
	ErrDenied = streams.ErrDenied
	// ErrNoRoom is wrapped by what KV.Admit returns if nothing may grow here, whether it was sent before or not.
	ErrNoRoom = streams.ErrNoRoom
)

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
	options Options
	streams *streams.Streams
}

// New makes the service of a member.
func New(options Options) *Service {
	return &Service{options: options, streams: streams.New(streams.Options{
		ClusterID: options.ClusterID, MemberID: options.MemberID, Member: options.Member, Clients: options.Clients,
		Requests: requests{options.KV}, Clock: options.Clock, Held: options.Held, Bounds: streams.DefaultBounds(),
		SessionLength: clients.ClientSessionLength, MaxMessageBytes: options.MaxMessageBytes,
		Pending: options.Pending, Failed: options.Failed,
	})}
}

// requests are those of etcd's KV service, as streams see them.
type requests struct{ KV }

// Response implements streams.Requests.
func (r requests) Response(kind quoratepb.Proposal_Kind, result *kv.Result) []byte {
	response := r.KV.Response(kind, result)
	return response.AppendWire(make([]byte, 0, response.SizeWire()))
}

// Wire implements streams.Requests.
func (requests) Wire(err error) error { return etcderr.Wire(err) }

// Propose serves the stream of one client.
func (w *Service) Propose(
	stream grpc.BidiStreamingServer[quoratepb.ProposeRequest, quoratepb.ProposeResponse],
) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	p := newStream(w, stream)
	p.stream, err = w.streams.Begin(stream.Context(), first.Key, admission.CallerOf(stream.Context()), p)
	if err != nil {
		return err
	}
	go p.receive(first) // it ends with the call
	defer p.stream.Close()
	return p.send()
}

// Collect shows how many native clients are here, and how many sessions they have in the cluster, as this member knows.
func (w *Service) Collect(e *metrics.Emitter) {
	machine, release := w.options.Member.Machine()
	open := len(machine.ClientSessions())
	release()
	counts := w.streams.Counts()
	e.Gauge("quorate_client_sessions", "Open sessions of native clients.", float64(open))
	e.Gauge("quorate_clients_offered_bytes", "What native clients offered and the core has not looked at yet.",
		float64(w.options.Clients.OfferedBytes()))
	e.Gauge("quorate_clients_registered", "Native clients that have a stream to this member, or had one a moment ago.",
		float64(counts.Registered))
	e.Counter("quorate_clients_refused_total", "Streams of native clients that were refused because there were too many.",
		float64(counts.Refused))
	e.Counter("quorate_clients_unread_total", "Streams of native clients that ended because nobody read the answers.",
		float64(counts.Unread))
}
