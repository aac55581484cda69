package clients

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/proposals"
)

// Member is the member that serves the clients.
type Member interface {
	Waits
	Leader() consensus.MemberID
	Machine() (machine *apply.Machine, release func())
	// Receive takes an offer to the core. False means that this member may not hear it now.
	Receive(message consensus.Message) bool
	// Proposals is nil before requests are served.
	Proposals() *proposals.Table
	// EncodeCommand encodes a command that may be proposed, as lanes.Requests.Encode. Proposals is not nil.
	EncodeCommand(command *kv.Command) ([]byte, error)
	// Wake makes the loop propose the queued commands.
	Wake()
	Send(messages []consensus.Message)
}

// Waits is what a member does while a goroutine waits for it: to open and retire sessions.
type Waits interface {
	// AwaitStart returns once requests are served.
	AwaitStart(ctx context.Context) error
	Propose(ctx context.Context, command *kv.Command) (kv.Result, error)
	ReadIndex(ctx context.Context) error
	// Await waits for the end of a proposal of a client that propose queues.
	Await(ctx context.Context, id consensus.ProposalID, propose func(done proposals.Completion) error) (kv.Result, error)
	// TellHeard tells the leader which clients this member heard from.
	TellHeard(leader consensus.MemberID, heard []consensus.MemberID) error
	// Background runs f in a goroutine. The member waits for it when it stops.
	Background(f func())
}

// Options configure the Clients of one member.
type Options struct {
	ID             consensus.MemberID
	Patience       time.Duration   // sessions of clients that are silent this long are retired; zero: DefaultClientPatience
	RequestTimeout time.Duration   // for opening a session
	SessionBytes   int64           // memory for all open sessions; zero: enough for maxClientSessions
	OfferedBytes   int             // offers.Budget.Most
	Stopping       context.Context // ends when the member stops
	Clock          env.Clock
	Logger         *slog.Logger
}

// Clients is the part of a member that serves native clients.
type Clients struct {
	options  Options
	member   Member
	board    clusterBoard
	direct   direct
	offers   budget
	alive    liveness
	retiring retiring
	opening  chan struct{} // a token for each session that is being opened
}

// New returns the Clients of a member. Watch must run, or the sessions of silent clients are never retired.
func New(options Options, member Member) *Clients {
	c := &Clients{options: options, member: member, opening: make(chan struct{}, maxOpening)}
	c.offers.init(options.OfferedBytes)
	context.AfterFunc(options.Stopping, c.offers.close)
	return c
}

// ClusterState returns the latest state; the zero value before the member has started.
func (c *Clients) ClusterState() ClusterState { return c.board.state() }

// ClusterStateChanged returns a channel that is closed at the next change of ClusterState.
func (c *Clients) ClusterStateChanged() <-chan struct{} { return c.board.changes.Next() }

// Follow publishes the state of the core to clients. fast says whether they may use the fast path at all.
func (c *Clients) Follow(replica *raft.Replica, fast bool) {
	inForce := replica.InForce()
	c.board.set(&ClusterState{
		Leader: replica.Leader(), Term: replica.Term(), Config: inForce.ID, Voters: inForce.Config.Voters,
		Fast: fast && replica.Stable(), config: inForce.Config,
	})
}
