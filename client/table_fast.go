package client

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/api/quoratepb"
)

// offer names the writes that wait for their first attempt, as many as a message holds, and returns them to be offered to all
// voters on a view. They leave by the lane of the leader, which will also say how they end. Without others they go to
// the leader alone.
func (t *table) offer(client uint64, g *view, leader *lane, others []uint64) []*quoratepb.Proposal {
	t.mu.Lock()
	defer t.mu.Unlock()
	if client != t.client || t.closed != nil {
		return nil
	}
	var offered []*quoratepb.Proposal
	size := 0
	keep := t.queue[:0]
	for i, c := range t.queue {
		if c.ended || t.tooLarge(c) {
			continue
		}
		if c.attempts > 0 || c.race != nil {
			keep = append(keep, c)
			continue
		}
		size += len(c.request) + overheadBytes
		if len(offered) >= maxBatchCount || len(t.sent) >= maxUnanswered ||
			size > min(maxBatchBytes, t.message) && len(offered) > 0 || c.session == nil && !t.give(c) {
			keep = append(keep, t.queue[i:]...)
			break
		}
		offered = append(offered, c.proposal())
		c.attempts++
		c.lane, c.term = leader, g.term
		if len(others) > 0 {
			c.race = &race{view: *g, asked: slices.Clone(others)}
			t.stats.Offered++
		}
		t.sent[c.name] = c
	}
	clear(t.queue[len(keep):])
	t.queue = keep
	return offered
}

func (c *call) proposal() *quoratepb.Proposal {
	return &quoratepb.Proposal{
		Session: c.name.session, Sequence: c.name.sequence, Kind: c.kind, Request: c.request,
		Again: c.attempts > 0 || c.race != nil,
	}
}

// verdicts takes what a member says of writes that were offered to it.
func (t *table) verdicts(member uint64, all *quoratepb.Verdicts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	on := termConfigOf(all.TermConfig)
	for _, v := range all.Verdicts {
		c := t.sent[name{v.Session, v.Sequence}]
		if c == nil {
			c = t.waits(name{v.Session, v.Sequence})
		}
		if c == nil || c.race == nil || !c.race.take(member, all.Leader, on, v) || c.ended || c.told {
			continue
		}
		// Decided, but perhaps not applied anywhere: its place in the session is free only once a member says that it was.
		t.stats.Won++
		c.told, c.response = true, c.race.response
		c.session.early++
		c.race.over = true
		close(c.done)
	}
}

// waits finds a write that was offered and waits to be asked for again.
func (t *table) waits(id name) *call {
	for _, list := range [2][]*call{t.later, t.queue} {
		for _, c := range list {
			if c.race != nil && c.name == id {
				return c
			}
		}
	}
	return nil
}

// laneLost asks for what left by a lane that has ended by the link.
func (t *table) laneLost(l *lane) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.askAgain(func(c *call) bool { return c.lane == l })
}

// newTerm asks for what was offered in an earlier term by the link: whoever led it may be gone.
func (t *table) newTerm(term uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if term > t.term {
		t.term = term
		t.askAgain(func(c *call) bool { return c.lane != nil && c.term < term })
	}
}

// askAgain queues unanswered writes, in order, to leave by the link.
func (t *table) askAgain(which func(*call) bool) {
	var again []*call
	for id, c := range t.sent {
		if !which(c) {
			continue
		}
		delete(t.sent, id)
		c.lane = nil
		if !c.ended {
			again = append(again, c)
		}
	}
	if len(again) > 0 {
		slices.SortFunc(again, func(a, b *call) int { return cmp.Compare(a.order, b.order) })
		t.queue = append(again, t.queue...)
		t.signal()
	}
}

// mayBeHeld reports whether a write of which the only attempt came to nothing is to be asked for again because voters may hold
// it: in that time they say more.
func (c *call) mayBeHeld() bool {
	if c.attempts != 1 || c.alone() || c.refusals >= maxRefusals {
		return false
	}
	c.refusals++
	c.attempts = 0 // it did nothing
	return true
}

// settling reports whether there are writes that were told by their verdicts, and not yet by the log.
func (t *table) settling() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current != nil && t.current.told() || t.previous != nil && t.previous.told()
}
