package lanes

import (
	"errors"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/proposals"
)

// requestSweep is the interval between searches for requests that have timed out: a timer for each request would cost more than
// a put.
const requestSweep = 250 * time.Millisecond

// Propose replicates a command. done is called once with the result, by a goroutine that it must not block, unless abandon has
// returned true. After an error nothing happened, and done is not called.
func (r *Requests) Propose(command *kv.Command, done proposals.Completion) (abandon func() bool, err error) {
	payload, err := r.Encode(command)
	if err != nil {
		return nil, err
	}
	return r.Start(consensus.EntryCommand, payload, done)
}

// Encode encodes a command that may be proposed: every road from a client to the log begins here. The error is level.ErrLater
// for a value that this build does not know, proposals.ErrTooLarge, or a *NeedsLevelError.
func (r *Requests) Encode(command *kv.Command) (payload []byte, err error) {
	if err := command.Check(); err != nil {
		return nil, err
	}
	payload = command.Append(nil)
	if r.maxBytes > 0 && len(payload) > r.maxBytes {
		return nil, proposals.ErrTooLarge
	}
	if needs := r.host.Needs(payload); needs > level.First && !r.host.Active(needs) {
		return nil, &NeedsLevelError{needs}
	}
	return payload, nil
}

// Start is Propose for what is encoded.
func (r *Requests) Start(
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
	r.host.Turn(Loop)
	return q.abandon, nil
}

// Read calls done once the state applied here includes all writes that were acknowledged before the call.
func (r *Requests) Read(done proposals.Completion) (abandon func() bool, err error) {
	if err := r.serves(); err != nil {
		return nil, err
	}
	q := r.newRequest(done)
	q.reads, q.reader.To = true, q
	r.loop.AddReader(&q.reader)
	r.enter(q)
	r.host.Turn(Loop)
	return q.abandon, nil
}

// Expect waits for a proposal that has an id already. propose queues it, and done is called with its result. It has no timeout.
func (r *Requests) Expect(
	id consensus.ProposalID, done proposals.Completion, propose func(done proposals.Completion) error,
) (abandon func() bool, err error) {
	q := &request{requests: r, done: done}
	abandon = func() bool {
		if !q.settle() {
			return false
		}
		r.loop.Proposals().AbandonFor(id, q)
		return true
	}
	return abandon, propose(q)
}

// serves returns an error before requests are served, and while this member serves nothing.
func (r *Requests) serves() error {
	if !r.Started() {
		return ErrTimeout
	}
	return r.host.Superseded()
}

// newRequest returns a request that begins now.
func (r *Requests) newRequest(done proposals.Completion) *request {
	return &request{requests: r, done: done, begun: r.clock.Now()}
}

// enter makes a request that the loop knows time out. The request may have ended already.
func (r *Requests) enter(q *request) {
	r.waiting.mu.Lock()
	defer r.waiting.mu.Unlock()
	if q.settled.Load() {
		return // it was completed already
	}
	r.waiting.open.PushBack(&q.place, q)
	if !r.waiting.sweeps {
		r.waiting.sweeps = true
		r.clock.AfterFunc(requestSweep, r.sweep)
	}
}

// settle removes a request from the waiting ones, and reports whether this call is the one that ends it.
func (q *request) settle() bool {
	if q.settled.Swap(true) {
		return false
	}
	q.requests.waiting.mu.Lock()
	q.place.Remove()
	q.requests.waiting.mu.Unlock()
	return true
}

// Complete implements proposals.Completion.
func (q *request) Complete(result kv.Result, err error) {
	q.CompleteAfter(proposals.Passage{}, result, err)
}

// CompleteAfter implements proposals.Passenger.
func (q *request) CompleteAfter(by proposals.Passage, result kv.Result, err error) {
	if q.settle() {
		proposals.Tell(q.done, by, result, err)
	}
}

// Shown completes a read: the state here is recent enough.
func (q *request) Shown(by proposals.Passage) { q.CompleteAfter(by, kv.Result{}, nil) }

// abandon reports whether the Completion was not called before. After true it is never called.
func (q *request) abandon() bool {
	if !q.settle() {
		return false
	}
	q.forget()
	return true
}

// forget makes the loop drop the request, and reports whether the request is a command that has been sent and may still happen.
func (q *request) forget() (sent bool) {
	if q.reads {
		q.requests.loop.DropReader(&q.reader)
	}
	return q.proposal != nil && q.requests.loop.Proposals().Abandon(q.proposal)
}

// sweep ends the requests that have timed out.
func (r *Requests) sweep() {
	for q := r.overdue(); q != nil; q = r.overdue() {
		r.expire(q)
	}
}

// overdue returns the oldest request if it has timed out; else it returns nil, and sets the timer of the next sweep if requests
// wait.
func (r *Requests) overdue() *request {
	r.waiting.mu.Lock()
	defer r.waiting.mu.Unlock()
	q := r.waiting.open.First()
	switch {
	case q == nil:
		r.waiting.sweeps = false
		return nil
	case !r.host.Stopped() && r.clock.Now().Before(q.begun.Add(r.timeout)):
		r.clock.AfterFunc(requestSweep, r.sweep)
		return nil
	}
	return q
}

func (r *Requests) expire(q *request) {
	if !q.settle() {
		return
	}
	err := r.TimeoutError(q.begun)
	if r.host.Stopped() {
		err = ErrStopped
	}
	if sent := q.forget(); sent && errors.Is(err, proposals.ErrNoLeader) {
		err = proposals.ErrLeaderFailed // it was sent to a leader that is gone since
	}
	q.done.Complete(kv.Result{}, err)
}
