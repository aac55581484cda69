package client

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/api/quoratepb"
)

// offer gives ids to writes that were never sent, as many as a message holds, and returns them to be offered to the
// leader and others on a view. The leader's stream carries them, and later their answers. Without others they go to the
// leader alone.
func (t *table) offer(client uint64, g *view, leader *voterStream, others []uint64) []*quoratepb.Proposal {
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
		c.stream, c.term = leader, g.term
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

// verdicts handles the verdicts of a member on writes that were offered to it.
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
		// Decided, but perhaps not applied anywhere yet: its session must stay open until a member answers that it was
		// applied.
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

// streamLost sends the writes of a voterStream that has ended again, over the link.
func (t *table) streamLost(l *voterStream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.askAgain(func(c *call) bool { return c.stream == l })
}

// newTerm sends writes that were offered in an earlier term again, over the link: the leader of that term may be gone.
func (t *table) newTerm(term uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if term > t.term {
		t.term = term
		t.askAgain(func(c *call) bool { return c.stream != nil && c.term < term })
	}
}

// askAgain queues unanswered writes, in order, for the link.
func (t *table) askAgain(which func(*call) bool) {
	var again []*call
	for id, c := range t.sent {
		if !which(c) {
			continue
		}
		delete(t.sent, id)
		c.stream = nil
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

// mayBeHeld reports whether voters may hold a record of a write whose only attempt was refused. Then it is sent again
// after a pause, in which more voters answer.
func (c *call) mayBeHeld() bool {
	if c.attempts != 1 || c.alone() || c.refusals >= maxRefusals {
		return false
	}
	c.refusals++
	c.attempts = 0 // it did nothing
	return true
}

// settling reports whether there are writes that were answered by verdicts and are not known to be applied yet.
func (t *table) settling() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current != nil && t.current.told() || t.previous != nil && t.previous.told()
}
