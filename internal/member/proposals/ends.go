package proposals

import (
	"errors"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/membership"
)

// ResultTable is the part of the state machine that remembers what proposals gave.
type ResultTable interface {
	Result(id consensus.ProposalID) (kv.Result, bool, error)
	SessionOpen(id consensus.SessionID) bool
	SessionEnded(id consensus.SessionID) bool // and will never be open
}

// Resolve completes the proposals among entries that were applied with results: first this member's own, then those of
// clients, each in the order of the log.
func (t *Table) Resolve(entries []consensus.Entry, results []kv.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resolveOf(&t.own, entries, results)
	t.resolveOf(&t.clients, entries, results)
	if n := len(entries); n > 0 {
		t.passages.applied(entries[n-1].Index)
	}
}

func (t *Table) resolveOf(q *queue, entries []consensus.Entry, results []kv.Result) {
	if q.first == nil {
		return
	}
	for i := range entries {
		if id := entries[i].Proposal; t.queueOf(id) == q {
			if p := t.find(id); p != nil {
				q.told(p, t.tick)
				t.resolve(p, results[i], t.passageOf(p, entries[i].Index))
			}
		}
	}
	q.proceedAll(t.tick)
}

// Progressed notes how far the log has come at a time, before the entries are applied.
func (t *Table) Progressed(now time.Time, p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.Commit > 0 {
		t.passages.commits.push(passing{upto: p.Commit, at: now, waited: p.Waited, leader: p.Leader})
	}
	t.passages.readies.push(passing{upto: p.Ready, at: now})
}

// passageOf returns the passage of a proposal whose entry is applied now.
func (t *Table) passageOf(p *Pending, index consensus.Index) Passage {
	commit, ready := t.passages.commits.of(index), t.passages.readies.of(index)
	return Passage{
		Route: t.inferred.routeOf(index), Left: p.left, Known: commit.at, Ready: ready.at,
		Waited: commit.waited, Leader: commit.leader,
	}
}

// resolve handles the result of one entry of a proposal.
func (t *Table) resolve(p *Pending, result kv.Result, by Passage) {
	own := p.queue == &t.own
	switch {
	case p == t.sessions.opening:
		t.settle(p)
		t.sessions.opened(result.Err == nil)
	case errors.Is(result.Err, kv.ErrSkipped):
		p.queue.enqueue(p) // its entry came too late for its revision, and changed nothing: the next one is not tied to any
	case own && errors.Is(result.Err, kv.ErrSessionUnknown):
		t.lose(p.ID.Session)
	case own && errors.Is(result.Err, kv.ErrAborted):
		t.renew(p)
	default:
		t.end(p, result, by, nil)
	}
}

// end settles a proposal and completes it.
func (t *Table) end(p *Pending, result kv.Result, by Passage, err error) {
	t.settle(p)
	p.tell(result, by, err)
}

// renew proposes under another id what was given up because no member could tell whether it was still wanted. It has never
// been executed and never will be under the old one.
func (t *Table) renew(p *Pending) {
	t.settle(p)
	if !p.awaited() {
		return
	}
	p.renewed = &Pending{
		queue: p.queue, Proposal: consensus.Proposal{Kind: p.Kind, Payload: p.Payload}, done: p.done, uncounted: p.uncounted,
	}
	p.done = nil
	p.queue.enqueue(p.renewed)
}

// Refuse handles what the leader, or the core for want of one, refused. Of a command that is never the end: another copy of
// the message, or of an earlier one to another leader, may be in the log, so that only the log can tell.
func (t *Table) Refuse(refusals []consensus.Refusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range refusals {
		p := t.find(r.ID)
		switch {
		case p == nil:
		case r.Reason == consensus.ReasonNoLeader, r.Reason == consensus.ReasonBusy && !p.repeats():
			p.queue.postpone(p) // it did not enter the log, and Resend repeats no change of the configuration
		case r.Reason == consensus.ReasonStaleConfig && p.repeats():
			// The core binds what it sends from now on to the configuration that the leader named.
			if p.queue.enqueue(p) && p.queue == &t.own {
				t.stale.Add(1)
			}
		case p.repeats(): // it goes out again with Resend
		default:
			t.end(p, kv.Result{}, Passage{Left: p.left}, &membership.RefusedError{Reason: r.Reason, Config: r.Config})
		}
	}
}

// Decided completes own proposals that are decided and not applied here yet. They stay in their session, and are repeated under
// their id, until they are: the session must not end before.
func (t *Table) Decided(now time.Time, leader consensus.MemberID, decided []tally.Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range decided {
		p := t.find(decided[i].Proposal)
		if p == nil || !p.awaited() {
			continue
		}
		result, err := kv.DecodeResult(decided[i].Reply)
		if err != nil {
			continue // a leader of a later version: its entry will say the same
		}
		p.tell(result, Passage{
			Route: RouteFast, Left: p.left, Known: now, Ready: now, Waited: decided[i].Waited, Leader: leader,
		}, nil)
	}
}

// NoteInferred is told which entries this member found committed by itself, before they are applied: those after the first
// index, up to the second.
func (t *Table) NoteInferred(span [2]consensus.Index) {
	t.mu.Lock()
	t.inferred.note(span[0], span[1])
	t.mu.Unlock()
}

// Restored completes what a snapshot has applied in our stead.
func (t *Table) Restored(table ResultTable) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.sessions.opening; o != nil && table.SessionOpen(o.ID.Session) {
		t.resolve(o, kv.Result{}, Passage{})
	}
	for _, p := range append(t.own.all(), t.clients.all()...) {
		if p.resolved { // the opening, if it was applied; else no result of it is found
			continue
		}
		result, found, err := table.Result(p.ID)
		switch {
		case err != nil:
			return err
		case found:
			t.resolve(p, result, Passage{Route: RouteLeader, Left: p.left})
		case p.queue == &t.clients && p.ID.Sequence != 0 && table.SessionEnded(p.ID.Session):
			t.end(p, kv.Result{}, Passage{Left: p.left}, ErrSessionLost)
		}
	}
	if s := t.sessions.previous; s != nil && !table.SessionOpen(s.id) {
		t.lose(s.id) // its retire entry was part of the snapshot
	}
	return nil
}

// lose gives up a session that is not open any more. A proposal under it may or may not have happened, and can not be repeated
// under another id. Without our doing that happens only if an opening from before the last restart arrived late.
func (t *Table) lose(id consensus.SessionID) {
	for _, p := range t.own.all() {
		if p.ID.Session == id {
			t.end(p, kv.Result{}, Passage{Left: p.left}, ErrLeaderFailed)
		}
	}
	t.sessions.lose(id)
}

// FailAll ends everything that waits, for a member that stops.
func (t *Table) FailAll(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range []*queue{&t.own, &t.clients} {
		for _, p := range append(q.all(), q.waiting()...) {
			t.end(p, kv.Result{}, Passage{Left: p.left}, err)
		}
		q.unsent, q.postponed = nil, nil
	}
}
