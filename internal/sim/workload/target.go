package workload

import (
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/nativeclient"
	"github.com/quorate/quorate/internal/sim/users"
)

// Target is a member as a client sees it. Callbacks come at most once, never from inside the call; a member that crashes calls
// none of them, but Life changes.
type Target interface {
	// Life is zero while the member is down, and different after each start.
	Life() int
	// Propose proposes as a user; nil: the world has no users. The error is a *users.Refusal if nothing was proposed.
	Propose(by *users.Person, command *kv.Command, done func(kv.Result, error)) (abandon func())
	// Stream opens the stream of a native client that shows its key. hear is called with each message of the member, broke once
	// if the stream breaks, which the client need not notice.
	Stream(by *users.Person, key []byte, hear func(*quoratepb.ProposeResponse), broke func()) Stream
	ID() consensus.MemberID
	// Endpoint is the client endpoint of the member.
	Endpoint() string
	// List lists the members of the cluster: confirmed by a quorum if it is linearizable. It may never be answered.
	List(linearizable bool, done func(cluster uint64, members []nativeclient.Place))
	Read(done func())
	Range(op *kv.RangeOp) (kv.RangeResult, kv.Revision, error)
	// RangeBy is a Range as a user, after a Read if it is linearizable. It takes a moment.
	RangeBy(by *users.Person, op *kv.RangeOp, linearizable bool, done func(kv.RangeResult, kv.Revision, error))
	// ReadTxnBy is RangeBy for a transaction of ranges only.
	ReadTxnBy(by *users.Person, op *kv.TxnOp, linearizable bool, done func([]kv.RangeResult, kv.Revision, error))
	LogIn(by *users.Person, password string, done func(hash string, err error))
	Renew(by *users.Person, id kv.LeaseID, done func(ttlSeconds int64, err error))
	Hub() *watch.Hub
}

// Stream is the client's end of a stream to a member.
type Stream interface {
	Send(r *quoratepb.ProposeRequest)
	Close()
}

// World is the port of the clients to their world.
type World interface {
	Now() time.Duration
	After(d time.Duration, f func())
	Targets() []Target
	// At returns the member at an endpoint, or nil.
	At(endpoint string) Target
	// Clock is the clock of a native client's machine, which may be wrong.
	Clock(client int) func() time.Time
	// Operation and Answer are for the trace.
	Operation(client int, what string)
	Answer(client int, ok bool, revision kv.Revision)
}

// Mix says how many clients there are and how often they do what. The weights are relative.
type Mix struct {
	Clients, Tenants, Watchers int
	Natives                    int  // clients that choose the ids of their writes
	Liars                      int  // native clients that lie to voters
	Thief                      bool // a client without their keys writes in their sessions
	Owners                     clients.Faults
	Direct                     bool        // they offer their writes to all voters themselves
	Tally                      tally.Rules // by which they count
	Stays                      bool        // a negative control: they use only the endpoints that they were given
	Readers                    int         // of the clients, those that only read and stay with their member
	Keys                       int
	Bulk                       int           // size of some values in bytes; zero: all are small
	Think                      time.Duration // mean pause between two operations
	Patience                   time.Duration
	Put, Get, Local            int // Local is a serializable read
	CAS, Delete, Txn, Range    int
	CompactEvery               time.Duration // zero: never
	LeaseTTL                   int64         // seconds, the shortest
	Users                      *users.Operator
	LoseEvents                 bool // a negative control: watchers lose some
}
