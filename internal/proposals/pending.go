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

	lane          *lane
	before, after *Pending     // in the lane
	queued        bool         // to be sent at the next opportunity
	sent          bool         // it has left before: only the leader is asked again
	resolved      bool         // its end is known, or nobody waits for it
	uncounted     bool         // proposed by the table itself: it uses up no bound
	done          Completion   // nil once it was told or abandoned
	more          []Completion // others that wait: a client came back before its former stream was known to be dead
	sentTick      uint64
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
	p.lane.release(p)
	done, more := p.done, p.more
	p.done, p.more = nil, nil
	tell(done, result, route, err)
	for _, done := range more {
		tell(done, result, route, err)
	}
}

// lane is the open proposals of one kind of proposer, in order.
type lane struct {
	first, last *Pending   // those that have an id
	queue       []*Pending // to be sent, in order; those without an id wait for a session
	postponed   []*Pending // refused for want of a leader, to be queued again at the next tick
	open        int        // proposals that somebody waits for
	openBytes   int        // the sum of their payloads
}

// admit counts a proposal, if there is room for it.
func (l *lane) admit(p *Pending) error {
	if l.open >= maxOpenProposals || l.openBytes+len(p.Payload) > maxOpenBytes {
		return ErrTooMany
	}
	l.open++
	l.openBytes += len(p.Payload)
	return nil
}

func (l *lane) release(p *Pending) {
	if !p.uncounted {
		l.open--
		l.openBytes -= len(p.Payload)
	}
}

// enqueue makes a proposal leave with the next Take, unless it is about to.
func (l *lane) enqueue(p *Pending) bool {
	if p.resolved || p.queued {
		return false
	}
	p.queued = true
	l.queue = append(l.queue, p)
	return true
}

// postpone makes a proposal leave after the next tick.
func (l *lane) postpone(p *Pending) {
	if !p.queued {
		p.queued = true
		l.postponed = append(l.postponed, p)
	}
}

func (l *lane) retry() {
	if len(l.postponed) > 0 {
		l.queue = append(l.postponed, l.queue...)
		l.postponed = nil
	}
}

// resend queues what was sent at or before tick, before everything else.
func (l *lane) resend(tick uint64) {
	var again []*Pending
	for p := l.first; p != nil; p = p.after {
		if !p.queued && p.sentTick <= tick && p.repeats() {
			p.queued = true
			again = append(again, p)
		}
	}
	if len(again) > 0 {
		l.queue = append(again, l.queue...)
	}
}

// all returns the proposals that have an id, in order.
func (l *lane) all() (all []*Pending) {
	for p := l.first; p != nil; p = p.after {
		all = append(all, p)
	}
	return all
}

func (l *lane) pushBack(p *Pending) {
	if p.before = l.last; l.last == nil {
		l.first = p
	} else {
		l.last.after = p
	}
	l.last = p
}

func (l *lane) pushFront(p *Pending) {
	if p.after = l.first; l.first == nil {
		l.last = p
	} else {
		l.first.before = p
	}
	l.first = p
}

func (l *lane) remove(p *Pending) {
	if p.before == nil {
		l.first = p.after
	} else {
		p.before.after = p.after
	}
	if p.after == nil {
		l.last = p.before
	} else {
		p.after.before = p.before
	}
	p.before, p.after = nil, nil
}
