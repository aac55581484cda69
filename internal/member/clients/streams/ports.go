package streams

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/member/proposals"
)

// Clients is what a stream asks of a member for its client: *clients.Clients. Nothing of it waits.
type Clients interface {
	ProposeAllFor(commands []clients.Proposed, refuse func(at int, why error))
	Abandon(id consensus.ProposalID, done proposals.Completion)
	FirstResult(id consensus.ProposalID) (kv.Result, bool)
	// Awaits reports whether a proposal has been proposed here and has no result yet.
	Awaits(id consensus.ProposalID) bool
	RetireClientSession(session consensus.SessionID)
	KeepClient(client consensus.MemberID)
	ClientPatience() time.Duration

	ClusterState() clients.ClusterState
	ListenFor(client consensus.MemberID, l clients.Listener) (detach func(), err error)
	EncodeFor(id consensus.ProposalID, command *kv.Command) (consensus.Proposal, error)
	ExpectFor(
		id consensus.ProposalID, command *kv.Command, done proposals.Completion,
	) (proposal consensus.Proposal, leads bool, err error)
}

// Member is what a stream asks of a member about itself.
type Member interface {
	Learner() bool
	Machine() (machine *apply.Machine, release func())
}

// Asked says how a request came to be asked for.
type Asked struct {
	ID     consensus.ProposalID
	Record bool // it is to be held here as a record of the fast path, and others propose it
	// Passed says that it was admitted before, and had to wait for room. It takes nothing again from what limits allow.
	Passed bool
}

// Requests is etcd's KV service, whose requests and responses are in proposals and answers. A method with a context may wait.
type Requests interface {
	// Unsettled reports whether this member may know of other users than those who offer: nothing is recorded then.
	Unsettled(ctx context.Context) bool
	// Permit refuses who has not logged in.
	Permit(ctx context.Context) error
	// Admit reads and checks a request. One that is said to be proposed again is not held against the quota, so that the log
	// gives its answer. It gets ErrNoRoom where the log would not refuse it.
	Admit(ctx context.Context, r *quoratepb.Proposal, as Asked) (*kv.Command, error)
	// CostsLittle reports whether an admitted command needs no turn.
	CostsLittle(ctx context.Context, command *kv.Command) (bool, error)
	// Response is the response to what was applied, or to what the leader of the fast path has evaluated.
	Response(kind quoratepb.Proposal_Kind, result *kv.Result) []byte
	// Complete reads what a result needs beside what was kept of it.
	Complete(ctx context.Context, command *kv.Command, result *kv.Result) error
	// Wire returns an error as clients are told it.
	Wire(err error) error
}

// Driver is told of a stream when its goroutines have something to do. It returns at once, and calls nothing of the stream.
type Driver interface {
	// Ready says that Next may have something to send.
	Ready()
	// Room says that Go may go on where it returned Room.
	Room()
	// Open begins to open a session for the client. Opened says what came of it.
	Open(above uint64, keep []uint64)
}

// Need is what Go cannot go on without.
type Need uint8

// The needs.
const (
	goesOn Need = iota
	Done        // the next message
	Over        // nothing: the stream takes no more
	Room        // less that waits here: Driver.Room
	Turn        // the turn of a command, which Turning returns: Turned
	Offer       // that the core is offered what Offering returns
)

// Bounds of what streams may hold.
type Bounds struct {
	Proposals   int   // of a stream that are not answered, or whose answers are not taken, before no more is read from it
	Bytes       int   // of the requests of these
	Verdicts    int   // that may wait for a client before no more is read from it
	AnswerBytes int   // end a message of answers; one answer may be larger
	UnreadBytes int   // may wait for a client that does not read, before its stream ends
	ResultBytes int64 // of results that are kept until their clients say that they have them
	// FewResultBytes is how much may be kept of a client that may propose all the same.
	FewResultBytes int64
}

// The bounds of a member.
const (
	maxStreamProposals = 4096
	maxStreamBytes     = 32 << 20
	maxVerdicts        = maxStreamProposals
	maxAnswerBytes     = 1 << 20
	maxUnreadBytes     = 64 << 20
	maxResultBytes     = 256 << 20
	fewResultBytes     = 64 << 10
)

// DefaultBounds are those of a member.
func DefaultBounds() Bounds {
	return Bounds{
		Proposals: maxStreamProposals, Bytes: maxStreamBytes, Verdicts: maxVerdicts, AnswerBytes: maxAnswerBytes,
		UnreadBytes: maxUnreadBytes, ResultBytes: maxResultBytes, FewResultBytes: fewResultBytes,
	}
}

// Options belong to the streams of one member.
type Options struct {
	ClusterID, MemberID uint64
	Member              Member
	Clients             Clients
	Requests            Requests
	Clock               env.Clock         // by which a client is forgotten that has left
	Held                *admission.Ledger // of what clients hold
	Bounds              Bounds
	SessionLength       uint64         // proposals of a session
	MaxMessageBytes     int            // that a client may send
	Pending             *atomic.Int64  // proposals, counted with those of etcd's API
	Failed              *atomic.Uint64 // proposals that ended without a result, counted likewise
	Faults              Faults
}

// Faults drop rules, for negative controls.
type Faults struct {
	Owners     clients.Faults
	LosesRest  bool // answers that do not fit into a message do not come with the next one
	KeepsTurns bool // a turn is not given back
}
