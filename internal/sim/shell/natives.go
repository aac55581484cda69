package shell

import (
	"context"

	"fmt"
	"math"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/member/clients/streams"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/rpc/etcderr"
	"github.com/quorate/quorate/internal/sim/dice"
)

// sessionWrites is how many writes a native client may do in a session: few, so that clients change their sessions.
const sessionWrites = 24

// Natives is what a process has for native clients.
type Natives struct {
	Bounds  streams.Bounds
	Held    int64 // bytes that they may hold
	Offered int   // bytes that they may have offered before the core looks at them; zero: as many as at a member
	// Patience is how long one may be silent before its sessions are retired.
	Patience time.Duration
	Faults   streams.Faults
	// KeepsSilent, a negative control, retires no sessions of silent clients.
	KeepsSilent bool
}

// natives does for native clients what a member does, with the code that ships: package clients and its streams. It is the
// member that they see.
type natives struct {
	clients.Waits // nil: nothing here waits in a goroutine
	*Life
	lanes     *lanes.Lanes
	stores    *datadir.Stores
	ctx       context.Context // of all that it does
	toCore    func(inputs ...raft.Input)
	replicate func(command *kv.Command, done proposals.Completion) error
	complete  func(command *kv.Command, result *kv.Result) // reads again what a result left out
	clients   *clients.Clients
	streams   *streams.Streams
	tell      func(leader consensus.MemberID, heard []consensus.MemberID) error
	silent    func(session consensus.SessionID)
	read      func(done proposals.Completion) error // a read index
	keeps     bool                                  // Natives.KeepsSilent
	turns     turns
	offers    []*unoffered // that wait for the budget of offers
}

// begin makes what clients meet.
func (n *natives) begin(cluster consensus.ClusterID, o *Natives) {
	clock := clock{n.Life, n.Clock}
	n.turns.Life = n.Life
	n.clients = clients.New(clients.Options{
		ID: n.ID, OfferedBytes: o.Offered, Patience: o.Patience, Stopping: n.ctx, Clock: clock, Logger: discard,
	}, n)
	n.keeps = o.KeepsSilent
	n.After(n.clients.ScanInterval(), n.scan)
	n.streams = streams.New(streams.Options{
		ClusterID: uint64(cluster), MemberID: uint64(n.ID), Member: n, Clients: nativeClients{n.clients, n},
		Requests: requests{n}, Clock: clock, Held: admission.NewLedger(o.Held), Bounds: o.Bounds,
		SessionLength: sessionWrites, MaxMessageBytes: 1 << 20, Pending: new(atomic.Int64), Failed: new(atomic.Uint64),
		Faults: o.Faults,
	})
}

// Leader implements clients.Member.
func (n *natives) Leader() consensus.MemberID { return n.lanes.Leader().Leader() }

// Learner implements streams.Member.
func (n *natives) Learner() bool { return n.lanes.Leader().Learner() }

// Machine implements clients.Member.
func (n *natives) Machine() (*apply.Machine, func()) { return n.stores.Machine() }

// Proposals implements clients.Member.
func (n *natives) Proposals() *proposals.Table { return n.lanes.Requests().Proposals() }

// EncodeCommand implements clients.Member.
func (n *natives) EncodeCommand(command *kv.Command) ([]byte, error) {
	return n.lanes.Requests().Encode(command)
}

// Receive implements clients.Member.
func (n *natives) Receive(message consensus.Message) bool {
	n.toCore(raft.Receive{Message: message})
	return true
}

// Wake implements clients.Member.
func (n *natives) Wake() { n.lanes.Requests().Wake() }

// TellHeard implements clients.Member.
func (n *natives) TellHeard(leader consensus.MemberID, heard []consensus.MemberID) error {
	return n.tell(leader, heard)
}

// scan does in events what clients.Clients.Watch does in a goroutine.
func (n *natives) scan() {
	n.After(n.clients.ScanInterval(), n.scan)
	silent := n.clients.Scan()
	if len(silent) == 0 || n.keeps {
		return
	}
	_ = n.read(Completion(func(_ kv.Result, err error) {
		if err != nil {
			return
		}
		n.After(0, func() {
			for _, session := range n.clients.StillSilent(silent) {
				n.silent(session)
				nativeClients{n.clients, n}.RetireClientSession(session)
			}
		})
	}))
}

// Send implements clients.Member: what no native client listens for is lost.
func (n *natives) Send([]consensus.Message) {}

// nativeClients are the clients of a member, as streams see them.
type nativeClients struct {
	*clients.Clients
	natives *natives
}

// RetireClientSession implements streams.Clients.
func (c nativeClients) RetireClientSession(session consensus.SessionID) {
	ended, begins := c.Retire(session)
	if !begins {
		return
	}
	life := c.natives.Life
	err := c.natives.replicate(clients.Retirement(session), Completion(func(kv.Result, error) { life.After(0, ended) }))
	if err != nil {
		ended()
	}
}

// unoffered is what a native client offers, and is not taken yet.
type unoffered struct {
	client  consensus.MemberID
	message consensus.Message
	taken   func()
}

// offer passes an offer to the core. It returns false if that waits for the budget of offers; then taken is called later.
func (n *natives) offer(client consensus.MemberID, message consensus.Message, taken func()) bool {
	if n.clients.TryOffer(client, message) {
		return true
	}
	n.offers = append(n.offers, &unoffered{client, message, taken})
	return false
}

// retry offers again what waits for the budget of offers.
func (n *natives) retry() {
	waiting := n.offers
	n.offers = nil
	for _, o := range waiting {
		if n.offer(o.client, o.message, o.taken) {
			o.taken()
		}
	}
}

// turns lets one command at a time be proposed of those that cost much, each a moment later.
type turns struct {
	*Life
	taken bool
	queue []func(leave func())
}

// turnTakes is how long a turn takes to come, on average.
const turnTakes = 5 * time.Millisecond

func (t *turns) enter(begin func(leave func())) {
	t.queue = append(t.queue, begin)
	t.next()
}

func (t *turns) next() {
	if t.taken || len(t.queue) == 0 {
		return
	}
	begin := t.queue[0]
	t.queue = t.queue[1:]
	t.taken = true
	t.After(dice.Exponential(t.Rng, turnTakes), func() {
		begin(func() {
			t.After(0, func() {
				t.taken = false
				t.next()
			})
		})
	})
}

const (
	// refused is the share of writes that a member refuses before it proposes them, as for a lack of space, and of records.
	refused = 1.0 / 100
	// costly is the share of commands that need a turn.
	costly = 1.0 / 50
)

var errFull = status.Error(codes.ResourceExhausted, "sim: no space")

// requests are commands of the state machine.
type requests struct{ *natives }

// Permit implements streams.Requests.
func (requests) Permit(ctx context.Context) error { return caller(ctx).Permit() }

// Unsettled implements streams.Requests.
func (requests) Unsettled(ctx context.Context) bool { return caller(ctx).Unsettled() }

// Admit implements streams.Requests.
func (r requests) Admit(ctx context.Context, p *quoratepb.Proposal, _ streams.Asked) (*kv.Command, error) {
	command, err := kv.DecodeCommand(p.Request)
	switch {
	case err != nil:
		return nil, err
	case !dice.Chance(r.Rng, refused):
	case dice.Chance(r.Rng, 0.5):
		return nil, errFull
	default:
		return nil, fmt.Errorf("%w: %w", streams.ErrNoRoom, errFull)
	}
	if err := caller(ctx).Sign(&command); err != nil {
		return nil, fmt.Errorf("%w: %w", streams.ErrDenied, err)
	}
	return &command, nil
}

// CostsLittle implements streams.Requests.
func (r requests) CostsLittle(context.Context, *kv.Command) (bool, error) {
	return !dice.Chance(r.Rng, costly), nil
}

// Response implements streams.Requests.
func (requests) Response(_ quoratepb.Proposal_Kind, result *kv.Result) []byte {
	return result.Append(nil)
}

// Complete implements streams.Requests.
func (r requests) Complete(_ context.Context, command *kv.Command, result *kv.Result) error {
	r.complete(command, result)
	if result.Left != nil {
		return kv.ErrResultGone
	}
	return nil
}

// Wire implements streams.Requests.
func (requests) Wire(err error) error { return etcderr.Wire(err) }

// DefaultNatives is what a member has for native clients.
func DefaultNatives() Natives { return Natives{Bounds: streams.DefaultBounds(), Held: math.MaxInt32} }
