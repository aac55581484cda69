package member

import (
	"errors"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/level"
	"github.com/quorate/quorate/internal/proposals"
)

// requestSweep is how often requests that have waited too long are looked for: a timer for each would cost more than a put.
const requestSweep = 250 * time.Millisecond

// proposeAsync replicates a command: see Member.ProposeAsync.
func (r *requests) proposeAsync(command *kv.Command, done proposals.Completion) (abandon func() bool, err error) {
	payload, needs, err := r.encode(command)
	if err != nil {
		return nil, err
	}
	if needs > level.First && !r.levels.active(needs) {
		return nil, errNeedsLevel
	}
	return r.start(consensus.EntryCommand, payload, done)
}

// encode encodes a command, and says which feature level it needs.
func (r *requests) encode(command *kv.Command) (payload []byte, needs level.Level, err error) {
	payload = command.Append(nil)
	needs, _ = r.levels.needs(payload)
	if r.maxBytes > 0 && len(payload) > r.maxBytes {
		return nil, 0, ErrTooLarge
	}
	return payload, needs, nil
}

var errNeedsLevel = errors.New("member: ProposeAsync does not wait for a feature level")

// start queues an encoded proposal.
func (r *requests) start(
	kind consensus.EntryKind, payload []byte, done proposals.Completion,
) (abandon func() bool, err error) {
	if err := r.serves(); err != nil {
		return nil, err
	}
	q := r.newRequest(done)
	if q.proposal, err = r.loop.Proposals().Add(kind, payload, q); err != nil {
		return nil, err
	}
	r.enter(q)
	r.wake()
	return q.abandon, nil
}

// readAsync waits for a state that may be read: see Member.ReadAsync.
func (r *requests) readAsync(done proposals.Completion) (abandon func() bool, err error) {
	if err := r.serves(); err != nil {
		return nil, err
	}
	q := r.newRequest(done)
	q.reads, q.reader.To = true, q
	r.loop.AddReader(&q.reader)
	r.enter(q)
	r.wake()
	return q.abandon, nil
}

// serves fails before Start has ended, and while this member serves nothing.
func (r *requests) serves() error {
	if !r.isOpen() {
		return ErrTimeout
	}
	return r.superseded()
}

// newRequest returns a request that begins now.
func (r *requests) newRequest(done proposals.Completion) *request {
	return &request{requests: r, done: done, begun: r.clock.Now(), until: time.Now().Add(r.timeout)}
}

// enter has a request that the loop knows end in time. It may have ended already.
func (r *requests) enter(q *request) {
	r.waiting.mu.Lock()
	defer r.waiting.mu.Unlock()
	if q.settled.Load() {
		return // it was told already
	}
	r.waiting.open.PushBack(&q.place, q)
	if !r.waiting.sweeps {
		r.waiting.sweeps = true
		time.AfterFunc(requestSweep, r.sweep)
	}
}

// settle takes a request out, and reports whether nobody was told of its end yet.
func (q *request) settle() bool {
	if q.settled.Swap(true) {
		return false
	}
	q.requests.waiting.mu.Lock()
	q.place.Remove()
	q.requests.waiting.mu.Unlock()
	return true
}

// Via notes by which way the answer comes.
func (q *request) Via(route proposals.Route) { q.route = route }

// Complete implements proposals.Completion.
func (q *request) Complete(result kv.Result, err error) {
	if !q.settle() {
		return
	}
	if done, wants := q.done.(interface{ Via(route proposals.Route) }); wants && q.route != "" {
		done.Via(q.route)
	}
	q.done.Complete(result, err)
}

// Shown is told of a read: the state here shows what it has to.
func (q *request) Shown() { q.Complete(kv.Result{}, nil) }

// abandon reports whether the Completion was not told, and will not be.
func (q *request) abandon() bool {
	if !q.settle() {
		return false
	}
	q.forget()
	return true
}

// forget has the loop not remember the request.
func (q *request) forget() {
	if q.reads {
		q.requests.loop.DropReader(&q.reader)
	}
	if q.proposal != nil {
		q.requests.loop.Proposals().Abandon(q.proposal)
	}
}

// sweep ends what has waited too long.
func (r *requests) sweep() {
	for q := r.overdue(); q != nil; q = r.overdue() {
		r.expire(q)
	}
}

// overdue returns what has waited longest, if that is too long; else it sees to the next sweep.
func (r *requests) overdue() *request {
	r.waiting.mu.Lock()
	defer r.waiting.mu.Unlock()
	q := r.waiting.open.First()
	switch {
	case q == nil:
		r.waiting.sweeps = false
		return nil
	case !r.stopped() && time.Now().Before(q.until):
		time.AfterFunc(requestSweep, r.sweep)
		return nil
	}
	return q
}

func (r *requests) expire(q *request) {
	if !q.settle() {
		return
	}
	err := r.timeoutError(q.begun)
	if r.stopped() {
		err = ErrStopped
	}
	if q.proposal != nil && errors.Is(err, ErrNoLeader) && r.loop.Proposals().Sent(q.proposal) {
		err = ErrLeaderFailed // it left for a leader that is gone since, so it may still happen
	}
	q.forget()
	q.done.Complete(kv.Result{}, err)
}
