package member

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/linked"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/proposals"
)

// requests lets any goroutine ask the loop for something: that a command is applied, or that the state here is recent enough
// for a read. All of them are asynchronous (request.go); waiting.go lets a goroutine wait for one.
type requests struct {
	timeout  time.Duration // of requests whose context has no earlier deadline
	maxBytes int           // of an encoded command; zero: unlimited
	clock    env.Clock
	stopping context.Context
	wake     func() // the loop

	// These say why a request is not served, or why it was not answered in time.
	superseded func() error
	leader     *knownLeader
	levels     *levels
	connected  func(consensus.MemberID) bool

	started chan struct{} // closed by open
	loop    requestLoop   // set before started is closed

	waiting waitingRequests
	waiters sync.Pool // of *waiter
}

// request is a command or a read on its way. Its Completion is told once how it ended, by a goroutine that must not be held up.
type request struct {
	requests *requests
	done     proposals.Completion
	proposal *proposals.Pending // of a command
	reads    bool
	reader   node.Reader     // of a read
	route    proposals.Route // by which the answer comes
	settled  atomic.Bool
	begun    time.Time // by the member's clock
	until    time.Time // when it has waited too long, by the machine's
	place    linked.Place[request]
}

// waitingRequests are those that have not ended, nearly in the order of their timeouts.
type waitingRequests struct {
	mu     sync.Mutex
	open   linked.List[request]
	sweeps bool // a timer is running
}

// requestLoop is what requests need of the node of the loop.
type requestLoop interface {
	Proposals() *proposals.Table
	// AddReader has a reader told once the state here shows everything acknowledged before the call, and DropReader forgets it.
	AddReader(*node.Reader)
	DropReader(*node.Reader)
}

// open begins to serve requests.
func (r *requests) open(loop requestLoop) {
	r.loop = loop
	close(r.started)
}

// close fails the requests that wait. It is called once the member has stopped.
func (r *requests) close() {
	if r.isOpen() {
		r.loop.Proposals().FailAll(ErrStopped)
	}
}

func (r *requests) isOpen() bool {
	select {
	case <-r.started:
		return true
	default:
		return false
	}
}

// stopped reports whether the member ends.
func (r *requests) stopped() bool { return r.stopping.Err() != nil }

// proposals returns the table of what was proposed here; nil before Start has ended.
func (r *requests) proposals() *proposals.Table {
	if !r.isOpen() {
		return nil
	}
	return r.loop.Proposals()
}

// stale counts the commands of this member that a leader refused because they were bound to a configuration that was no longer
// in force. They went out again at once.
func (r *requests) stale() uint64 {
	if r.isOpen() {
		return r.loop.Proposals().Stale()
	}
	return 0
}

// held is how many proposals wait here because as much as may be is on its way.
func (r *requests) held() int {
	if r.isOpen() {
		return r.loop.Proposals().Held()
	}
	return 0
}

// openBytes is what all proposals bear that wait for their results here.
func (r *requests) openBytes() (own, clients int) {
	if r.isOpen() {
		return r.loop.Proposals().OpenBytes()
	}
	return 0, 0
}

// timeoutError says what a request that ran out of time most likely waited for, in etcd's distinctions.
func (r *requests) timeoutError(begun time.Time) error {
	if err := r.superseded(); err != nil {
		return err
	}
	leader := r.leader.Leader()
	switch {
	case leader == consensus.NoMember:
		return ErrNoLeader
	case r.leader.lostSince(begun):
		return ErrLeaderFailed
	case leader != r.leader.self && !r.connected(leader):
		return ErrConnectionLost
	}
	return ErrTimeout
}
