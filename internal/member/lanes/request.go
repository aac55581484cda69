package lanes

import (
	"errors"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/proposals"
)

// requestSweep is how often requests that have waited too long are looked for: a timer for each would cost more than a put.
const requestSweep = 250 * time.Millisecond

// Propose replicates a command. done is told once how it ended, by a goroutine that must not be held up, unless abandon has
// returned true. An error means that nothing happened, and that done is not told.
func (r *Requests) Propose(command *kv.Command, done proposals.Completion) (abandon func() bool, err error) {
	payload := command.Append(nil)
	if r.maxBytes > 0 && len(payload) > r.maxBytes {
		return nil, proposals.ErrTooLarge
	}
	if needs := r.host.Needs(payload); needs > level.First && !r.host.Active(needs) {
		return nil, &NeedsLevelError{needs}
	}
	return r.Start(consensus.EntryCommand, payload, done)
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

// Read tells done once the state applied here shows everything that was acknowledged before the call.
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

// Expect is for a proposal that has an id already, and that propose queues: done is told how it ended. It has no timeout.
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

// serves fails before requests are served, and while this member serves nothing.
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

// enter has a request that the loop knows end in time. It may have ended already.
func (r *Requests) enter(q *request) {
	r.waiting.mu.Lock()
	defer r.waiting.mu.Unlock()
	if q.settled.Load() {
		return // it was told already
	}
	r.waiting.open.PushBack(&q.place, q)
	if !r.waiting.sweeps {
		r.waiting.sweeps = true
		r.clock.AfterFunc(requestSweep, r.sweep)
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

// forget has the loop not remember the request, and reports whether it is a command that has left and so may still happen.
func (q *request) forget() (sent bool) {
	if q.reads {
		q.requests.loop.DropReader(&q.reader)
	}
	return q.proposal != nil && q.requests.loop.Proposals().Abandon(q.proposal)
}

// sweep ends what has waited too long.
func (r *Requests) sweep() {
	for q := r.overdue(); q != nil; q = r.overdue() {
		r.expire(q)
	}
}

// overdue returns what has waited longest, if that is too long; else it sees to the next sweep.
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
		err = proposals.ErrLeaderFailed // it left for a leader that is gone since
	}
	q.done.Complete(kv.Result{}, err)
}
