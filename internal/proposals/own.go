package proposals

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/membership"
)

// Completion is told once how a proposal ended.
type Completion interface {
	Complete(result kv.Result, err error)
}

// Pending is one command of this member on its way.
type Pending struct {
	id        consensus.ProposalID
	kind      consensus.EntryKind
	payload   []byte
	done      Completion // nil once it ended or was abandoned
	sentTick  uint64
	waiting   bool     // in the queue, to be sent at the next opportunity
	onlyOnce  bool     // a configuration change: never repeated by itself
	repeated  bool     // it has left before: only the leader is asked again
	renewed   *Pending // that took its place, if it was aborted
	committed bool     // resolved; the slot stays until those before it are resolved too
}

// Own is the member's table of proposals: it names them, repeats them and completes them.
//
// A session is opened by a log entry before its first proposal, replaced when it has numbered SessionLength
// proposals, and retired by a log entry when all of them are resolved, which bounds the replicated result table.
type Own struct {
	mu        sync.Mutex
	self      consensus.MemberID
	counts    bool     // this member counts who holds what it proposes
	current   *session // open, new proposals get their ids here; nil until the first is open
	previous  *session // being finished
	opening   *Pending
	retiring  bool // a retire entry of previous is on its way
	number    uint64
	limit     uint64
	queue     []*Pending // to be sent, in order; those without id wait for the session
	refused   []*Pending // refused for want of a leader, to be queued again at the next tick
	open      int        // unresolved proposals that somebody waits for
	openBytes int        // the sum of their payloads
	route     Route      // of the entry that is being resolved
	inferred  inferredSpans
	stale     atomic.Uint64 // commands that were bound to a configuration no longer in force
}

// SessionLength is how many proposals a session numbers. It bounds the result table: two sessions a member.
const SessionLength = 8192

// maxOpenProposals is how many callers may wait at once before new ones are refused.
const maxOpenProposals = 50_000

// maxOpenBytes bounds the payloads of all of them.
const maxOpenBytes = 256 << 20

func NewOwn(self consensus.MemberID, firstSession uint64) *Own {
	return &Own{self: self, number: firstSession, limit: SessionLength}
}

// Add queues a command. The payload belongs to the Own from now on.
func (p *Own) Add(kind consensus.EntryKind, payload []byte, onlyOnce bool, done Completion) (*Pending, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open >= maxOpenProposals || p.openBytes+len(payload) > maxOpenBytes {
		return nil, ErrTooMany
	}
	q := &Pending{kind: kind, payload: payload, done: done, onlyOnce: onlyOnce, waiting: true}
	p.open++
	p.openBytes += len(payload)
	p.queue = append(p.queue, q)
	return q, nil
}

// Sent reports whether q has left, at least as far as the core: only of one that has not, nothing can have happened.
func (p *Own) Sent(q *Pending) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !q.latest().id.IsZero()
}

// Stale counts the commands that a leader refused because they were bound to a configuration that was no longer in force.
func (p *Own) Stale() uint64 { return p.stale.Load() }

// Abandon forgets who waits for q. What was sent may still happen.
func (p *Own) Abandon(q *Pending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q = q.latest(); q.done == nil {
		return
	}
	q.done = nil
	p.open--
	p.openBytes -= len(q.payload)
	q.committed = true // nobody repeats it; the session may be retired over it
	if s := p.sessionOf(q.id.Session); s != nil {
		s.trim()
	}
}

// Leaving is a proposal that leaves now.
type Leaving struct {
	consensus.Proposal
	Fast bool // it may be decided on the fast path
}

// Take appends what has to be sent now to dst, in order: the session to open first, then the proposals.
func (p *Own) Take(dst []Leaving, tick uint64) []Leaving {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turnSession()
	if len(p.queue) == 0 {
		return dst
	}
	counter := consensus.NoMember
	if p.counts {
		counter = p.self
	}
	keep := p.queue[:0]
	for _, q := range p.queue {
		if q.committed || !q.waiting {
			continue
		}
		if q.id.IsZero() && !p.name(q) {
			keep = append(keep, q)
			continue
		}
		first := !q.repeated
		q.waiting, q.repeated, q.sentTick = false, true, tick
		dst = append(dst, Leaving{
			Proposal: consensus.Proposal{ID: q.id, Proposer: counter, Kind: q.kind, Payload: q.payload},
			Fast:     first && q.kind == consensus.EntryCommand && q.done != nil && mayBeFast(q.payload),
		})
	}
	clear(p.queue[len(keep):])
	p.queue = keep
	return dst
}

func (p *Own) CountHolders(counts bool) {
	p.mu.Lock()
	p.counts = counts
	p.mu.Unlock()
}

// name gives q the next id of the current session.
func (p *Own) name(q *Pending) bool {
	s := p.current
	if s == nil {
		return false
	}
	q.id = consensus.ProposalID{Session: s.id, Sequence: s.first + uint64(len(s.slots))}
	s.slots = append(s.slots, q)
	return true
}

// Resolve completes the proposals of this member among entries that were applied with results.
func (p *Own) Resolve(entries []consensus.Entry, results []kv.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range entries {
		if entries[i].Proposal.Session.Member == p.self {
			p.route = p.inferred.routeOf(entries[i].Index)
			p.resolveOne(entries[i].Proposal, results[i], nil)
		}
	}
	p.trimAll()
}

func (p *Own) resolveOne(id consensus.ProposalID, result kv.Result, err error) {
	if q := p.opening; q != nil && q.id == id {
		p.opened(result)
		return
	}
	s := p.sessionOf(id.Session)
	if s == nil {
		return
	}
	q := s.find(id.Sequence)
	if q == nil || q.committed {
		return
	}
	switch {
	case errors.Is(result.Err, kv.ErrSessionUnknown):
		p.lost(s)
		return
	case errors.Is(result.Err, kv.ErrAborted):
		p.renew(q)
		return
	case errors.Is(result.Err, kv.ErrSkipped):
		p.repeat(q) // its entry came too late for its revision, and changed nothing: the next one will not be tied to any
		return
	}
	q.committed = true
	p.finish(q, result, err)
}

func (p *Own) finish(q *Pending, result kv.Result, err error) {
	done := q.done
	if done == nil {
		return
	}
	q.done = nil
	if _, own := done.(retired); !own {
		p.open--
		p.openBytes -= len(q.payload)
	}
	q.payload = nil
	if err != nil {
		done.Complete(result, err)
		return
	}
	tell(done, result, p.route)
}

// Refuse handles what the leader, or the core for want of one, refused. A refusal for want of a leader only means
// "not yet": the proposal stays and goes out again with resend.
func (p *Own) Refuse(refusals []consensus.Refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range refusals {
		switch {
		case r.Reason == consensus.ReasonNoLeader:
			p.postpone(r.ID)
		case r.Reason == consensus.ReasonStaleConfig && p.again(r.ID):
			// The core binds what it sends from now on to the configuration that the leader named.
		case r.Reason == consensus.ReasonBusy:
			// The proposal stays, and goes out again with resend. "Nothing happened" can not be said: another copy of
			// the message, or of an earlier one to another leader, may be in the log.
		case p.opening != nil && p.opening.id == r.ID: // never for good: resend repeats it
		default:
			p.resolveOne(r.ID, kv.Result{}, &membership.RefusedError{Reason: r.Reason, Config: r.Config})
		}
	}
	p.trimAll()
}

// again queues a command that was refused only for the configuration that it was bound to. Changes of the configuration
// are not repeated: whoever asks for one says what to expect.
func (p *Own) again(id consensus.ProposalID) bool {
	q := p.named(id)
	if q == nil {
		return true // nobody waits for it
	}
	if q.kind != consensus.EntryCommand {
		return false
	}
	if p.repeat(q) {
		p.stale.Add(1)
	}
	return true
}

// repeat queues a proposal to leave again with the next Step.
func (p *Own) repeat(q *Pending) bool {
	if q.committed || q.waiting {
		return false
	}
	q.waiting = true
	p.queue = append(p.queue, q)
	return true
}

// named returns the proposal that bears id, or nil.
func (p *Own) named(id consensus.ProposalID) *Pending {
	if p.opening != nil && p.opening.id == id {
		return p.opening
	}
	if s := p.sessionOf(id.Session); s != nil {
		return s.find(id.Sequence)
	}
	return nil
}

func (p *Own) Awaits(id consensus.ProposalID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.named(id)
	return q != nil && q.done != nil
}

// postpone puts a refused proposal aside until the next tick: it did not enter the log.
func (p *Own) postpone(id consensus.ProposalID) {
	q := p.named(id)
	if q == nil || q.committed || q.waiting {
		return
	}
	q.waiting = true
	p.refused = append(p.refused, q)
}

// RetryRefused queues what was postponed.
func (p *Own) RetryRefused() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refused) > 0 {
		p.queue = append(p.refused, p.queue...)
		p.refused = nil
	}
}

// Resend queues everything that was sent at or before tick and is unresolved, in order, to go out again.
func (p *Own) Resend(tick uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var again []*Pending
	if q := p.opening; q != nil && !q.waiting && q.sentTick <= tick {
		q.waiting = true
		again = append(again, q)
	}
	for _, s := range []*session{p.previous, p.current} {
		if s == nil {
			continue
		}
		for _, q := range s.slots {
			if !q.committed && !q.waiting && !q.onlyOnce && q.sentTick <= tick {
				q.waiting = true
				again = append(again, q)
			}
		}
	}
	if len(again) > 0 {
		p.queue = append(again, p.queue...)
	}
}

// Restored completes what a snapshot has applied in our stead.
func (p *Own) Restored(table ResultTable) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.route = RouteLeader
	if q := p.opening; q != nil && table.SessionOpen(q.id.Session) {
		p.opened(kv.Result{})
	}
	for _, s := range []*session{p.previous, p.current} {
		if s == nil {
			continue
		}
		for _, q := range s.slots {
			if q.committed {
				continue
			}
			result, ok, err := table.Result(q.id)
			if err != nil {
				return err
			}
			if ok {
				p.resolveOne(q.id, result, nil)
			}
		}
		if !table.SessionOpen(s.id) && s == p.previous {
			p.previous, p.retiring = nil, false // its retire entry was part of the snapshot
		}
	}
	p.trimAll()
	return nil
}

// FailAll ends everything that waits, for a member that stops.
func (p *Own) FailAll(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range []*session{p.previous, p.current} {
		if s == nil {
			continue
		}
		for _, q := range s.slots {
			q.committed = true
			p.finish(q, kv.Result{}, err)
		}
	}
	for _, q := range p.queue {
		q.committed = true
		p.finish(q, kv.Result{}, err)
	}
	p.queue = nil
}

// Waiting reports whether take would send something.
func (p *Own) Waiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		return len(p.queue) > 0
	}
	// Without a session only what has an id can go, the opening of the session first. The loop must not spin for the rest.
	return p.opening == nil || slices.ContainsFunc(p.queue, func(q *Pending) bool { return !q.id.IsZero() })
}

// ResultTable is the part of the state machine that remembers what proposals gave.
type ResultTable interface {
	Result(id consensus.ProposalID) (kv.Result, bool, error)
	SessionOpen(id consensus.SessionID) bool
	SessionEnded(id consensus.SessionID) bool // and will never be open
}
