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

// How requests end that were not done.
var (
	// ErrStopped means that the member is shutting down.
	ErrStopped = datadir.ErrStopped
	// ErrTimeout means that a leader was there but the request did not finish in time. It may still happen.
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
	timeout  time.Duration // of requests that nobody ends before
	maxBytes int           // of an encoded command; zero: unlimited

	started atomic.Bool
	loop    RequestLoop // set before started is
	waiting waitingRequests
}

// request is a command or a read on its way. Its Completion is told once how it ended, by a goroutine that must not be held up.
type request struct {
	requests *Requests
	done     proposals.Completion
	proposal *proposals.Pending // of a command
	reads    bool
	reader   node.Reader     // of a read
	route    proposals.Route // by which the answer comes
	settled  atomic.Bool
	begun    time.Time // by the member's clock
	place    linked.Place[request]
}

// waitingRequests are those that have not ended, nearly in the order in which they began.
type waitingRequests struct {
	mu     sync.Mutex
	open   linked.List[request]
	sweeps bool // a timer is running
}

// RequestLoop is what Requests need of the node of the loop.
type RequestLoop interface {
	Proposals() *proposals.Table
	// AddReader has a reader told once the state here shows everything acknowledged before the call, and DropReader forgets it.
	AddReader(*node.Reader)
	DropReader(*node.Reader)
}

// NewRequests returns requests that are not served yet. Of the options Clock, RequestTimeout and MaxRequestBytes count.
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

// Close fails the requests that wait. It is called once the member has stopped.
func (r *Requests) Close() {
	if r.Started() {
		r.loop.Proposals().FailAll(ErrStopped)
	}
}

// Started reports whether requests are served.
func (r *Requests) Started() bool { return r.started.Load() }

// Proposals returns the table of what was proposed here; nil before requests are served.
func (r *Requests) Proposals() *proposals.Table {
	if !r.Started() {
		return nil
	}
	return r.loop.Proposals()
}

// Stale counts the commands of this member that a leader refused because they were bound to a configuration that was no longer
// in force. They went out again at once.
func (r *Requests) Stale() uint64 {
	if r.Started() {
		return r.loop.Proposals().Stale()
	}
	return 0
}

// Held is how many proposals wait here because as much as may be is on its way.
func (r *Requests) Held() int {
	if r.Started() {
		return r.loop.Proposals().Held()
	}
	return 0
}

// OpenBytes is what all proposals bear that wait for their results here.
func (r *Requests) OpenBytes() (own, clients int) {
	if r.Started() {
		return r.loop.Proposals().OpenBytes()
	}
	return 0, 0
}

// TimeoutError says what a request that ran out of time most likely waited for, in etcd's distinctions.
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

// Now is what the member's clock shows.
func (r *Requests) Now() time.Time { return r.clock.Now() }

// Wake has the loop step soon, and propose what is queued.
func (r *Requests) Wake() { r.host.Turn(Loop) }
