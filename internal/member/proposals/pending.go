package proposals

import (
	"slices"
	"time"

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
	resolved      bool         // its end is known, or no caller waits for it
	uncounted     bool         // proposed by the table itself: it uses up no bound
	done          Completion   // nil once it was told or abandoned
	more          []Completion // others that wait: a client came back before its former stream was known to be dead
	sentTick      uint64
	left          time.Time // when it left first
	turn          uint64    // when it left last, among all of its queue
	paced                   // what its lane knows of it
	renewed       *Pending  // that took its place, if it was aborted
}

// repeats reports whether a proposal may go out again by itself. A configuration change may not: its refusal by a second
// leader could not be told from success under the first.
func (p *Pending) repeats() bool { return p.Kind == consensus.EntryCommand }

// awaited reports whether a caller waits for the end of p.
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
func (p *Pending) tell(result kv.Result, by Passage, err error) {
	if !p.awaited() {
		return
	}
	p.queue.release(p)
	done, more := p.done, p.more
	p.done, p.more = nil, nil
	Tell(done, by, result, err)
	for _, done := range more {
		Tell(done, by, result, err)
	}
}

// queue is the open proposals of one kind of proposer, in order.
type queue struct {
	first, last *Pending   // those that have an id
	unsent      []*Pending // to be sent, in order; those without an id wait for a session
	postponed   []*Pending // refused for want of a leader, to be queued again at the next tick
	lanes       []lane     // before unsent: small and large ones, or all
	spent       int        // proposals that ended in one of these lists
	open        int        // proposals that a caller waits for
	openBytes   int        // the sum of their payloads
	mostBytes   int        // of that
	turns       uint64     // that were given out
	ended       uint64     // the last turn of which the log told the end
	endedTick   uint64     // when it did
}

// reservedPart of the bounds comes on top for what keeps the cluster running: changes of members, their jobs and sessions, ends
// of leases, what operators do. Writes of clients that are stuck do not keep it out.
const reservedPart = 8

// admit counts a proposal, if there is room for it.
func (q *queue) admit(p *Pending) error {
	most, mostBytes := maxOpenProposals, q.mostBytes
	if p.Kind == consensus.EntryConfig || kv.Administers(p.Payload) {
		most, mostBytes = most+most/reservedPart, mostBytes+mostBytes/reservedPart
	}
	if q.open >= most || q.openBytes+len(p.Payload) > mostBytes {
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

// enqueue makes a proposal leave with the next Take, unless it is about to, or as soon as its lane has room. Changes of the
// configuration do not wait.
func (q *queue) enqueue(p *Pending) bool {
	if p.resolved || p.queued {
		return false
	}
	p.queued = true
	l := q.laneOf(p)
	if p.Kind != consensus.EntryConfig && !p.counted && (len(l.held) > 0 || !l.take(p)) {
		l.held = append(l.held, p)
		return true
	}
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

// leaves notes that a proposal is sent, at a tick, and by a clock that only passages are told by.
func (q *queue) leaves(p *Pending, tick uint64, now time.Time) {
	q.turns++
	if p.repeated = p.sent; !p.sent {
		p.ends, p.left = q.laneOf(p).ended, now
	}
	p.queued, p.sent, p.sentTick, p.turn = false, true, tick, q.turns
}

// told notes that the log has told the end of a proposal. One that has not left from here came there another way: it says
// nothing of those that have.
func (q *queue) told(p *Pending, now uint64) {
	if !p.sent {
		return
	}
	q.ended, q.endedTick = max(q.ended, p.turn), now
	q.laneOf(p).told(p, now)
}

// settle gives the room of a proposal in its lane to others, who proceed after all that ends with it.
func (q *queue) settle(p *Pending) {
	if p.queued {
		q.spent++
	}
	if p.counted {
		p.counted = false
		q.laneOf(p).out -= len(p.Payload)
	}
}

// mostSpent is how many proposals that have ended may stay in the lists of a queue.
const mostSpent = 1024

// sweep takes those out of the lists that have ended there: without a leader nothing leaves, and callers come and go.
func (q *queue) sweep() {
	if q.spent < mostSpent {
		return
	}
	q.spent = 0
	lists := []*[]*Pending{&q.unsent, &q.postponed}
	for i := range q.lanes {
		lists = append(lists, &q.lanes[i].held)
	}
	for _, list := range lists {
		*list = slices.DeleteFunc(*list, func(p *Pending) bool { return p.resolved })
	}
}

// waiting returns all that wait to leave.
func (q *queue) waiting() []*Pending {
	all := append(slices.Clone(q.unsent), q.postponed...)
	for i := range q.lanes {
		all = append(all, q.lanes[i].held...)
	}
	return all
}

// held returns how many wait for room in their lane.
func (q *queue) held() (n int) {
	for i := range q.lanes {
		n += len(q.lanes[i].held)
	}
	return n
}

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

// Pace bounds how much of what is proposed here is on its way at once. Whatever is in the leader's log crosses its links in
// the order of the log: what one client proposes at once would delay the puts of all others, at all members, until it is
// through. Here it waits where others can pass it.
type Pace struct {
	// Least is how many bytes may always be on their way. Values that are larger than a part of it are large.
	Least int
	// Patience is after how many ticks an end is late: half an election timeout, which is several round trips.
	Patience uint64
}

// largePart of Pace.Least is the size from which on values are large.
const largePart = 32

// lostAfter is how many times Patience it takes until a proposal without a waiting caller counts as lost.
const lostAfter = 6

// lane is a part of a queue that does not wait for the other one.
type lane struct {
	pace      *Pace
	window    int         // bytes that may be on their way
	out       int         // bytes that left, or are about to, and did not end
	ended     int         // bytes that have ended, since the beginning
	took      uint64      // ticks, by the proposal that ended last; zero: the window fits
	came      int         // bytes that ended meanwhile
	held      []*Pending  // those for which there is no room, in order
	abandoned []abandoned // those that left and that no caller waits for, in order
}

// abandoned is a part of lane.out of which the end is not seen.
type abandoned struct {
	turn, tick uint64
	bytes      int
}

// paced is what a lane knows of a proposal.
type paced struct {
	counted  bool // in lane.out
	repeated bool // it left more than once: how long it took is not known
	ends     int  // lane.ended when it left
}

// take reports whether a proposal may leave, and counts it. One may always be on its way, however large.
func (l *lane) take(p *Pending) bool {
	if l.pace.Least == 0 || p.counted {
		return true
	}
	if l.out > 0 && l.out+len(p.Payload) > l.window {
		return false
	}
	p.counted = true
	l.out += len(p.Payload)
	return true
}

// told notes that a proposal has ended: the last one of a batch says how fast ends come. While they come in time there may be
// more on its way, if more is wanted.
func (l *lane) told(p *Pending, now uint64) {
	l.ended += len(p.Payload)
	if !p.counted || p.repeated {
		return
	}
	l.took, l.came = max(1, now-min(now, p.sentTick)), l.ended-p.ends
	if l.took <= l.pace.Patience && len(l.held) > 0 {
		l.window += len(p.Payload)
	}
}

// fit lets no more be on its way, once ends come late, than what ends in twice the patience.
func (l *lane) fit() {
	if l.took > l.pace.Patience {
		l.window = max(l.pace.Least, min(l.window, int(uint64(l.came)*2*l.pace.Patience/l.took)))
	}
	l.took = 0
}

// abandon notes that no caller waits any more for a proposal that has left: it is still on its way.
func (l *lane) abandon(p *Pending) {
	p.counted = false
	l.abandoned = append(l.abandoned, abandoned{turn: p.turn, tick: p.sentTick, bytes: len(p.Payload)})
}

// pass forgets what was abandoned and has ended by now, or is lost.
func (l *lane) pass(ended, now uint64) {
	for len(l.abandoned) > 0 {
		if f := l.abandoned[0]; f.turn > ended && f.tick+lostAfter*l.pace.Patience > now {
			return
		}
		l.out -= l.abandoned[0].bytes
		l.abandoned = l.abandoned[1:]
	}
}

// laneOf returns the lane of a proposal. Those of native clients have one: they keep their order.
func (q *queue) laneOf(p *Pending) *lane {
	if len(p.Payload)*largePart <= q.lanes[0].pace.Least {
		return &q.lanes[0]
	}
	return &q.lanes[len(q.lanes)-1]
}

// proceed lets those leave for which there is room now.
func (q *queue) proceed(l *lane) {
	for len(l.held) > 0 {
		p := l.held[0]
		if !p.resolved {
			if !l.take(p) {
				return
			}
			q.unsent = append(q.unsent, p)
		}
		l.held[0] = nil
		l.held = l.held[1:]
	}
	l.held = nil
}

// proceedAll does so in all lanes, after what has ended up to a tick.
func (q *queue) proceedAll(now uint64) {
	for i := range q.lanes {
		l := &q.lanes[i]
		l.fit()
		l.pass(q.ended, now)
		q.proceed(l)
	}
}
