package proposals

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Completion is told once how a proposal ended.
type Completion interface {
	Complete(result kv.Result, err error)
}

// Pending is one proposal on its way.
type Pending struct {
	consensus.Proposal // as it leaves; the id of an own one is zero until then

	queue         *queue
	before, after *Pending     // in the queue
	queued        bool         // to be sent at the next opportunity
	sent          bool         // it has left before: only the leader is asked again
	resolved      bool         // its end is known, or nobody waits for it
	uncounted     bool         // proposed by the table itself: it uses up no bound
	done          Completion   // nil once it was told or abandoned
	more          []Completion // others that wait: a client came back before its former stream was known to be dead
	sentTick      uint64
	turn          uint64   // when it left last, among all of its queue
	renewed       *Pending // that took its place, if it was aborted
}

// repeats reports whether a proposal may go out again by itself. A configuration change may not: its refusal by a second
// leader could not be told from success under the first.
func (p *Pending) repeats() bool { return p.Kind == consensus.EntryCommand }

// awaited reports whether somebody waits for the end of p.
func (p *Pending) awaited() bool { return p.done != nil }

// forget takes one away who waits for p.
func (p *Pending) forget(done Completion) {
	if p.done != done {
		p.more = slices.DeleteFunc(p.more, func(d Completion) bool { return d == done })
		return
	}
	if p.done = nil; len(p.more) > 0 {
		p.done, p.more = p.more[0], p.more[1:]
	}
}

// latest follows a proposal to the id that it has now.
func (p *Pending) latest() *Pending {
	for p.renewed != nil {
		p = p.renewed
	}
	return p
}

// tell completes p for all that wait.
func (p *Pending) tell(result kv.Result, route Route, err error) {
	if !p.awaited() {
		return
	}
	p.queue.release(p)
	done, more := p.done, p.more
	p.done, p.more = nil, nil
	tell(done, result, route, err)
	for _, done := range more {
		tell(done, result, route, err)
	}
}

// queue is the open proposals of one kind of proposer, in order.
type queue struct {
	first, last *Pending   // those that have an id
	unsent      []*Pending // to be sent, in order; those without an id wait for a session
	postponed   []*Pending // refused for want of a leader, to be queued again at the next tick
	open        int        // proposals that somebody waits for
	openBytes   int        // the sum of their payloads
	mostBytes   int        // of that
	turns       uint64     // that were given out
	ended       uint64     // the last turn of which the log told the end
	endedTick   uint64     // when it did
}

// admit counts a proposal, if there is room for it.
func (q *queue) admit(p *Pending) error {
	if q.open >= maxOpenProposals || q.openBytes+len(p.Payload) > q.mostBytes {
		return ErrTooMany
	}
	q.open++
	q.openBytes += len(p.Payload)
	return nil
}

func (q *queue) release(p *Pending) {
	if !p.uncounted {
		q.open--
		q.openBytes -= len(p.Payload)
	}
}

// enqueue makes a proposal leave with the next Take, unless it is about to.
func (q *queue) enqueue(p *Pending) bool {
	if p.resolved || p.queued {
		return false
	}
	p.queued = true
	q.unsent = append(q.unsent, p)
	return true
}

// postpone makes a proposal leave after the next tick.
func (q *queue) postpone(p *Pending) {
	if !p.queued {
		p.queued = true
		q.postponed = append(q.postponed, p)
	}
}

func (q *queue) retry() {
	if len(q.postponed) > 0 {
		q.unsent = append(q.postponed, q.unsent...)
		q.postponed = nil
	}
}

// resend queues what was sent at or before tick, before everything else.
func (q *queue) resend(tick uint64) {
	q.again(func(p *Pending) bool { return p.sentTick <= tick })
}

// resendOverdue does so with what was overtaken, and with all if nothing has ended since tick. Proposals travel to the leader,
// into its log and back in one order: as long as ends come, those that were sent later are on their way.
func (q *queue) resendOverdue(tick uint64) {
	still := q.endedTick <= tick
	q.again(func(p *Pending) bool { return p.sentTick <= tick && (still || p.turn < q.ended) })
}

func (q *queue) again(due func(p *Pending) bool) {
	var again []*Pending
	for p := q.first; p != nil; p = p.after {
		if !p.queued && p.repeats() && due(p) {
			p.queued = true
			again = append(again, p)
		}
	}
	if len(again) > 0 {
		q.unsent = append(again, q.unsent...)
	}
}

// leaves notes that a proposal is sent.
func (q *queue) leaves(p *Pending, tick uint64) {
	q.turns++
	p.queued, p.sent, p.sentTick, p.turn = false, true, tick, q.turns
}

// told notes that the log has told the end of a proposal.
func (q *queue) told(p *Pending, now uint64) { q.ended, q.endedTick = max(q.ended, p.turn), now }

// all returns the proposals that have an id, in order.
func (q *queue) all() (all []*Pending) {
	for p := q.first; p != nil; p = p.after {
		all = append(all, p)
	}
	return all
}

func (q *queue) pushBack(p *Pending) {
	if p.before = q.last; q.last == nil {
		q.first = p
	} else {
		q.last.after = p
	}
	q.last = p
}

func (q *queue) pushFront(p *Pending) {
	if p.after = q.first; q.first == nil {
		q.last = p
	} else {
		q.first.before = p
	}
	q.first = p
}

func (q *queue) remove(p *Pending) {
	if p.before == nil {
		q.first = p.after
	} else {
		p.before.after = p.after
	}
	if p.after == nil {
		q.last = p.before
	} else {
		p.after.before = p.before
	}
	p.before, p.after = nil, nil
}
