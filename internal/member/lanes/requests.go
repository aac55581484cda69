package lanes

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/base/linked"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/node"
	"github.com/quorate/quorate/internal/member/proposals"
)

// Errors of requests that did not finish.
var (
	// ErrStopped means that the member is shutting down.
	ErrStopped = datadir.ErrStopped
	// ErrTimeout means that a leader was known but the request did not finish in time. It may still happen.
	ErrTimeout = errors.New("member: request timed out")
	// ErrConnectionLost is a timeout while the connection to the leader was down. It may still happen.
	ErrConnectionLost = errors.New("member: request timed out, possibly due to connection lost")
)

// NeedsLevelError means that a command needs a feature level that is not active; nothing happened.
type NeedsLevelError struct{ Needs level.Level }

func (e *NeedsLevelError) Error() string {
	return fmt.Sprintf("member: a command needs feature level %d, which is not active", e.Needs)
}

// Requests lets any goroutine ask the loop for something: that a command is applied, or that the state here is recent enough
// for a read. It holds up nobody (request.go).
type Requests struct {
	host     Host
	leader   *KnownLeader
	clock    env.Clock
	timeout  time.Duration // of requests whose callers do not end them earlier
	maxBytes int           // of an encoded command; zero: unlimited

	started atomic.Bool
	loop    RequestLoop // set before started
	waiting waitingRequests
}

// request is a command or a read in flight. Its Completion is called once with the result, by a goroutine that it must not
// block.
type request struct {
	requests *Requests
	done     proposals.Completion
	proposal *proposals.Pending // of a command
	reads    bool
	reader   node.Reader // of a read
	settled  atomic.Bool
	begun    time.Time // by the member's clock
	place    linked.Place[request]
}

// waitingRequests are the requests that have not ended, nearly in the order in which they began.
type waitingRequests struct {
	mu     sync.Mutex
	open   linked.List[request]
	sweeps bool // a timer is running
}

// RequestLoop is the port of Requests to the node of the loop.
type RequestLoop interface {
	Proposals() *proposals.Table
	// AddReader makes the node call the reader once the state here includes all writes that were acknowledged before the call;
	// DropReader forgets the reader.
	AddReader(*node.Reader)
	DropReader(*node.Reader)
}

// NewRequests returns requests that are not served yet. It uses Clock, RequestTimeout and MaxRequestBytes of the options.
func NewRequests(o *Options, host Host, leader *KnownLeader) *Requests {
	return &Requests{
		host: host, leader: leader, clock: o.Clock, timeout: o.RequestTimeout, maxBytes: o.MaxRequestBytes,
	}
}

// Open begins to serve requests.
func (r *Requests) Open(loop RequestLoop) {
	r.loop = loop
	r.started.Store(true)
}

// Close fails the waiting requests. Call it once the member has stopped.
func (r *Requests) Close() {
	if r.Started() {
		r.loop.Proposals().FailAll(ErrStopped)
	}
}

// Started reports whether requests are served.
func (r *Requests) Started() bool { return r.started.Load() }

// Proposals returns the table of this member's proposals; nil before requests are served.
func (r *Requests) Proposals() *proposals.Table {
	if !r.Started() {
		return nil
	}
	return r.loop.Proposals()
}

// Stale counts the commands of this member that a leader refused because they were bound to a configuration that was no longer
// in force. They were sent again at once.
func (r *Requests) Stale() uint64 {
	if r.Started() {
		return r.loop.Proposals().Stale()
	}
	return 0
}

// Held is how many proposals wait here because the limit of those in flight is reached.
func (r *Requests) Held() int {
	if r.Started() {
		return r.loop.Proposals().Held()
	}
	return 0
}

// OpenBytes returns the bytes of all proposals that wait for their results here.
func (r *Requests) OpenBytes() (own, clients int) {
	if r.Started() {
		return r.loop.Proposals().OpenBytes()
	}
	return 0, 0
}

// TimeoutError returns the likely reason for which a request timed out, in etcd's distinctions.
func (r *Requests) TimeoutError(begun time.Time) error {
	if err := r.host.Superseded(); err != nil {
		return err
	}
	leader := r.leader.Leader()
	switch {
	case leader == consensus.NoMember:
		return proposals.ErrNoLeader
	case r.leader.LostSince(begun):
		return proposals.ErrLeaderFailed
	case leader != r.leader.self && !r.host.Connected(leader):
		return ErrConnectionLost
	}
	return ErrTimeout
}

// Now is the time of the member's clock.
func (r *Requests) Now() time.Time { return r.clock.Now() }

// Wake asks for a step of the loop, which proposes the queued commands.
func (r *Requests) Wake() { r.host.Turn(Loop) }
