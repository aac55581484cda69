package member

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/level"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/proposals"
)

// requests lets any goroutine ask the loop for something and wait for it: that a command is applied, or that the state here is
// recent enough for a read. Requests that come before Start wait for it.
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

	later   laters
	timers  timerPool
	waiters sync.Pool // of *waiter
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

// awaitStart lets a request wait that comes before Start has ended. It fails while this member serves nothing.
func (r *requests) awaitStart(ctx context.Context) error {
	select {
	case <-r.started:
		return r.superseded()
	default:
	}
	select {
	case <-r.started:
		return r.superseded()
	case <-ctx.Done():
		return ctx.Err()
	case <-r.stopping.Done():
		return ErrStopped
	}
}

// waiter is a Completion that a goroutine waits for.
type waiter struct {
	result kv.Result
	route  proposals.Route
	err    error
	done   chan struct{}
}

func (w *waiter) Complete(result kv.Result, err error) {
	w.result, w.err = result, err
	w.done <- struct{}{}
}

// Via notes by which way the answer comes.
func (w *waiter) Via(route proposals.Route) { w.route = route }

func (r *requests) newWaiter() *waiter {
	if w, ok := r.waiters.Get().(*waiter); ok {
		return w
	}
	return &waiter{done: make(chan struct{}, 1)}
}

// command replicates a command and returns what applying it gave: see Member.Propose.
func (r *requests) command(ctx context.Context, command *kv.Command) (kv.Result, error) {
	if own := command.Publish; own != nil && own.Member == uint64(r.leader.self) {
		own.Level = r.levels.stores.Latest().OwnLevel()
	}
	payload := command.Append(nil)
	if needs, _ := kv.Needs(payload); needs > level.First {
		if err := r.levels.await(ctx, needs); err != nil {
			return kv.Result{}, err
		}
	}
	if r.maxBytes > 0 && len(payload) > r.maxBytes {
		return kv.Result{}, ErrTooLarge
	}
	return r.propose(ctx, consensus.EntryCommand, payload)
}

// propose replicates an entry and returns what applying it gave.
func (r *requests) propose(ctx context.Context, kind consensus.EntryKind, payload []byte) (kv.Result, error) {
	if err := r.awaitStart(ctx); err != nil {
		return kv.Result{}, err
	}
	w := r.newWaiter()
	begun := r.clock.Now()
	q, err := r.loop.Proposals().Add(kind, payload, w)
	if err != nil {
		return kv.Result{}, err
	}
	r.wake()
	timer := r.timers.get(r.timeout)
	defer r.timers.put(timer)
	select {
	case <-w.done:
		result, err := w.result, w.err
		noteRoute(ctx, w.route)
		w.result, w.route, w.err = kv.Result{}, "", nil
		r.waiters.Put(w)
		return result, err
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = r.timeoutError(begun)
		if r.loop.Proposals().Sent(q) && errors.Is(err, ErrNoLeader) {
			err = ErrLeaderFailed // it left for a leader that is gone since, so it may still happen
		}
	case <-r.stopping.Done():
		select {
		case <-w.done: // the answer came just before the end
			return w.result, w.err
		default:
			err = ErrStopped
		}
	}
	r.loop.Proposals().Abandon(q) // the waiter is not pooled again: it may just be being completed
	return kv.Result{}, err
}

// await is propose for a proposal that has an id already, and that propose queues.
func (r *requests) await(
	ctx context.Context, id consensus.ProposalID, propose func(done proposals.Completion) error,
) (kv.Result, error) {
	w := &waiter{done: make(chan struct{}, 1)}
	if err := propose(w); err != nil {
		return kv.Result{}, err
	}
	begun := r.clock.Now()
	var err error
	select {
	case <-w.done:
		return w.result, w.err
	case <-ctx.Done():
		if err = ctx.Err(); errors.Is(err, context.DeadlineExceeded) {
			err = r.timeoutError(begun)
		}
	case <-r.stopping.Done():
		err = ErrStopped
	}
	r.loop.Proposals().AbandonFor(id, w)
	return kv.Result{}, err
}

// shownReader is closed when a read may be answered.
type shownReader chan struct{}

// Shown implements the port of node.Reader.
func (s shownReader) Shown() { close(s) }

// readIndex returns once the state applied here shows everything that was acknowledged before the call.
func (r *requests) readIndex(ctx context.Context) error {
	if err := r.awaitStart(ctx); err != nil {
		return err
	}
	shown := make(shownReader)
	reader := &node.Reader{To: shown}
	r.loop.AddReader(reader)
	defer r.loop.DropReader(reader)
	r.wake()
	select {
	case <-shown:
		return nil
	default:
	}
	begun := r.clock.Now()
	timer := r.timers.get(r.timeout)
	defer r.timers.put(timer)
	select {
	case <-shown:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return r.timeoutError(begun)
	case <-r.stopping.Done():
		return ErrStopped
	}
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
