package proposals

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// maxOpenProposals is how many callers may wait at once before new ones are refused: so many for proposals of this member,
// and as many for those of native clients.
const maxOpenProposals = 50_000

// maxOpenBytes bounds the payloads of all of them, again of each kind, if nothing else is said.
const maxOpenBytes = 256 << 20

// maxJoined is how many may wait for one proposal beside the first. A client needs one for each of its streams.
const maxJoined = 64

// Table holds the open proposals of one member: its own, which it names in sessions of its own, and those of native
// clients that come through it, which bear the ids that the clients gave them.
type Table struct {
	mu        sync.Mutex
	self      consensus.MemberID
	counts    bool   // this member counts who holds what it proposes
	tick      uint64 // now
	own       queue
	sessions  sessions // of own, with the proposals in them
	clients   queue
	ofClients map[consensus.ProposalID]*Pending
	inferred  inferredSpans
	passages  passages
	pace      Pace
	stale     atomic.Uint64 // own commands that were bound to a configuration no longer in force
}

// New returns the table of a member. firstSession is greater than the number of every session that the member had. openBytes
// bounds the payloads of open proposals, of each kind; zero: the default.
func New(self consensus.MemberID, firstSession uint64, openBytes int) *Table {
	bound := queue{mostBytes: cmp.Or(openBytes, maxOpenBytes)}
	t := &Table{
		self:      self,
		own:       bound,
		clients:   bound,
		sessions:  sessions{self: self, number: firstSession, length: SessionLength},
		ofClients: map[consensus.ProposalID]*Pending{},
	}
	t.SetPace(Pace{})
	return t
}

// SetPace bounds from the beginning how much is on its way. Without it nothing waits.
func (t *Table) SetPace(pace Pace) {
	t.pace = pace
	one := lane{pace: &t.pace, window: pace.Least}
	t.own.lanes, t.clients.lanes = []lane{one, one}, []lane{one}
}

// OpenBytes is what all open proposals of this member, and those of native clients, bear.
func (t *Table) OpenBytes() (own, clients int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.own.openBytes, t.clients.openBytes
}

// Held is how many proposals wait here because as much as may be is on its way.
func (t *Table) Held() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.own.held() + t.clients.held()
}

// Outgoing is the proposals that leave with one Step, sorted by their way, each list in order.
type Outgoing struct {
	Changes  []consensus.Proposal // of the configuration
	Commands []consensus.Proposal // for the leader
	Offers   []consensus.Proposal // for all voters: the fast path may decide them
}

// InferCommits says whether this member counts acknowledgements of its proposals itself from now on.
func (t *Table) InferCommits(on bool) {
	t.mu.Lock()
	t.counts = on
	t.mu.Unlock()
}

// Tick notes the time, and queues what was refused for want of a leader.
func (t *Table) Tick(now uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tick = now
	for _, q := range []*queue{&t.own, &t.clients} {
		q.retry()
		q.proceedAll(now)
		q.sweep()
	}
}

// Add queues a proposal of this member. It gets its id when it leaves. The payload belongs to the table from now on.
func (t *Table) Add(kind consensus.EntryKind, payload []byte, done Completion) (*Pending, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &Pending{Proposal: consensus.Proposal{Kind: kind, Payload: payload}, queue: &t.own, done: done}
	if err := t.own.admit(p); err != nil {
		return nil, err
	}
	t.own.enqueue(p)
	return p, nil
}

// AddFor queues a command under the id that a native client gave it, or joins those who wait for it already. The payload
// belongs to the table from now on. One that was sent already, by a message of the client, leaves again only if it stays
// without an answer.
func (t *Table) AddFor(id consensus.ProposalID, payload []byte, done Completion, sent bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.addFor(id, payload, done, sent)
}

// OfClient is a command under the id that a native client gave it.
type OfClient struct {
	ID      consensus.ProposalID
	Payload []byte // belongs to the table from now on
	Done    Completion
	Refused error // why it does not wait, which AddAllFor says
}

// AddAllFor is AddFor for what came in one message: the member's loop finds all of it, or nothing.
func (t *Table) AddAllFor(all []OfClient) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range all {
		if one := &all[i]; one.Refused == nil {
			one.Refused = t.addFor(one.ID, one.Payload, one.Done, false)
		}
	}
}

func (t *Table) addFor(id consensus.ProposalID, payload []byte, done Completion, sent bool) error {
	if p := t.ofClients[id]; p != nil {
		if len(p.more) >= maxJoined {
			return ErrTooMany
		}
		p.more = append(p.more, done)
		return nil
	}
	p := &Pending{
		Proposal: consensus.Proposal{ID: id, Kind: consensus.EntryCommand, Payload: payload},
		queue:    &t.clients, done: done,
	}
	if err := t.clients.admit(p); err != nil {
		return err
	}
	t.ofClients[id] = p
	t.clients.pushBack(p)
	if sent {
		t.clients.leaves(p, t.tick, time.Time{})
	} else {
		t.clients.enqueue(p)
	}
	return nil
}

// Abandon forgets the caller that waits for a proposal of this member, and reports whether the proposal has left, at least as
// far as the core: then it may still happen. Of one that has not left nothing has happened, nor will it.
func (t *Table) Abandon(p *Pending) (sent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p = p.latest()
	sent = !p.ID.IsZero()
	if p.awaited() {
		p.done = nil
		t.unattended(p)
	}
	return sent
}

// AbandonFor forgets that done waits for a proposal of a client. A proposal that was sent may still happen.
func (t *Table) AbandonFor(id consensus.ProposalID, done Completion) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.ofClients[id]; p != nil {
		if p.forget(done); !p.awaited() {
			t.unattended(p)
		}
	}
}

// unattended takes out a proposal that no caller waits for any more: it is not repeated, and its session may end over it.
func (t *Table) unattended(p *Pending) {
	p.queue.release(p)
	if p.sent && p.counted {
		p.queue.laneOf(p).abandon(p)
	}
	t.settle(p)
}

// Stale counts the own commands that a leader refused because they were bound to a configuration that was no longer in
// force.
func (t *Table) Stale() uint64 { return t.stale.Load() }

// Awaits reports whether a caller waits here for the result of a proposal.
func (t *Table) Awaits(id consensus.ProposalID) bool {
	if t.queueOf(id) == nil {
		return false // of another member, as most: they need no look
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.find(id)
	return p != nil && p.awaited()
}

// find returns the open proposal with an id, nil if there is none.
func (t *Table) find(id consensus.ProposalID) *Pending {
	if id.Session.OfClient() {
		return t.ofClients[id]
	}
	return t.sessions.find(id)
}

// queueOf returns where the proposals are kept that an id is of; nil for those of other members.
func (t *Table) queueOf(id consensus.ProposalID) *queue {
	switch {
	case id.Session.OfClient():
		return &t.clients
	case id.Session.Member == t.self:
		return &t.own
	}
	return nil
}

// Waiting reports whether Take would return something.
func (t *Table) Waiting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.clients.unsent) > 0 {
		return true
	}
	if t.sessions.current != nil {
		return len(t.own.unsent) > 0
	}
	// Without a session only what has an id can go, the opening of the session first. The loop must not spin for the rest.
	return t.sessions.opening == nil || slices.ContainsFunc(t.own.unsent, func(p *Pending) bool { return !p.ID.IsZero() })
}

// Unsent returns how many proposals wait to be sent.
func (t *Table) Unsent() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.own.unsent) + len(t.clients.unsent)
}

// Take returns what has to be sent now: a session to open first, then the own proposals, then those of clients. Own commands
// that may be decided on the fast path are among the Offers if the member offers. The lists are the caller's. now is for their
// passages.
func (t *Table) Take(tick uint64, now time.Time, offers bool) Outgoing {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turnSession()
	var out Outgoing
	t.takeFrom(&t.own, &out, tick, now, offers)
	t.takeFrom(&t.clients, &out, tick, now, false)
	return out
}

func (t *Table) takeFrom(q *queue, out *Outgoing, tick uint64, now time.Time, offers bool) {
	if len(q.unsent) == 0 {
		return
	}
	counter := consensus.NoMember
	if t.counts {
		counter = t.self
	}
	keep := q.unsent[:0]
	for i, p := range q.unsent {
		if p.resolved {
			continue
		}
		if p.ID.IsZero() {
			if !t.sessions.name(p) {
				keep = append(keep, p)
				continue
			}
			q.pushBack(p)
		}
		p.Proposer = counter
		list := &out.Commands
		switch {
		case p.Kind == consensus.EntryConfig:
			list = &out.Changes
		case offers && !p.sent && p.awaited() && mayBeFast(&p.Proposal):
			list = &out.Offers
		}
		if *list == nil {
			*list = make([]consensus.Proposal, 0, len(q.unsent)-i)
		}
		*list = append(*list, p.Proposal)
		q.leaves(p, tick, now)
	}
	clear(q.unsent[len(keep):])
	q.unsent = keep
}

// ResendOverdue is Resend for what may have been lost: what was sent before something whose end is known, and everything if no
// end has become known since tick.
func (t *Table) ResendOverdue(tick uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own.resendOverdue(tick)
	t.clients.resendOverdue(tick)
}

// Resend queues everything that was sent at or before tick and is unresolved, in order, to go out again.
func (t *Table) Resend(tick uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own.resend(tick)
	t.clients.resend(tick)
}

// settle takes a proposal out whose end is known, or that no caller waits for.
func (t *Table) settle(p *Pending) {
	if p.resolved {
		return
	}
	p.resolved = true
	p.queue.settle(p)
	if p.ID.IsZero() {
		return // it never left the queue, which passes over it
	}
	p.queue.remove(p)
	if p.queue == &t.clients {
		delete(t.ofClients, p.ID)
	} else {
		t.sessions.settle(p.ID)
	}
}
