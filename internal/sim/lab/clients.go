package lab

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
)

// clients write one after another, each at any member, and ask again, under the same number, until they are answered. A
// write is acknowledged by the member that it was given to, once that one has applied it.
type clients struct {
	w      *world
	on     bool
	told   bool // each write is worth a line
	fast   bool // each is offered to all voters at once
	early  int  // how many a superquorum decided
	turn   int
	next   uint64
	acked  []ack
	begun  time.Duration
	closed time.Duration
}

// ack is an acknowledged write.
type ack struct {
	number uint64
	at     time.Duration
}

const clientCount = 3

// Sessions: proposals of clients and of the operator come back under them.
var (
	clientSession   = consensus.SessionID{Member: 100, Number: 1}
	operatorSession = consensus.SessionID{Member: 101, Number: 1}
)

func (c *clients) start() {
	c.on = true
	for i := range clientCount {
		c.w.After(c.w.delay*time.Duration(2+i), c.write)
	}
}

// stop lets no write begin any more; those under way go on.
func (c *clients) stop() {
	if c.on {
		c.on, c.closed = false, c.w.Now()
	}
}

func (c *clients) write() {
	if !c.on {
		return
	}
	c.next++
	c.ask(c.next)
}

// ask gives a write to the next member that serves, and again to another one if nothing comes of it.
func (c *clients) ask(number uint64) {
	if c.isAcked(number) {
		return
	}
	c.w.After(c.w.tick*10, func() { c.ask(number) })
	for range c.w.members {
		c.turn = (c.turn + 1) % len(c.w.members)
		m := c.w.members[c.turn]
		if m.running() && m.status.Leader != consensus.NoMember && m.status.Config.Contains(m.id) && !m.status.Removed {
			c.give(m, number)
			return
		}
	}
}

func (c *clients) give(m *member, number uint64) {
	m.waiting[number] = true
	command := kv.Command{Put: &kv.PutOp{Key: fmt.Appendf(nil, "w%d", number)}} // each touches a key of its own
	m.step(raft.Propose{Fast: c.fast, Proposals: []consensus.Proposal{{
		ID: consensus.ProposalID{Session: clientSession, Sequence: number}, Proposer: m.id, Kind: consensus.EntryCommand,
		Payload: command.Append(nil),
	}}})
}

// leaderChanged gives what waits at a member to it again: the leader before may have died with it.
func (c *clients) leaderChanged(m *member) {
	if m.status.Leader == consensus.NoMember {
		return
	}
	for _, number := range slices.Sorted(maps.Keys(m.waiting)) {
		c.w.After(0, func() {
			if m.running() && m.waiting[number] {
				c.give(m, number)
			}
		})
	}
}

func (c *clients) isAcked(number uint64) bool {
	return slices.ContainsFunc(c.acked, func(a ack) bool { return a.number == number })
}

// refused asks again: at once where the configuration had changed, for the member knows it now, and elsewhere otherwise.
func (c *clients) refused(m *member, refusal *consensus.Refusal) {
	number := refusal.ID.Sequence
	if !m.waiting[number] {
		return
	}
	if refusal.Reason == consensus.ReasonStaleConfig {
		c.w.After(0, func() {
			if m.running() && m.waiting[number] {
				c.give(m, number)
			}
		})
		return
	}
	delete(m.waiting, number)
}

// applied acknowledges what waits at m.
func (c *clients) applied(m *member, e *entry) {
	number := e.Proposal.Sequence
	if e.Kind == consensus.EntryCommand && m.waiting[number] && slices.Contains(m.store.writes, number) {
		c.acknowledge(m, number, "w%d is acknowledged by %v")
	}
}

// decided acknowledges, at its proposer, what a superquorum has decided.
func (c *clients) decided(m *member, number uint64) {
	if m.waiting[number] {
		c.early++
		c.acknowledge(m, number, "w%d is decided by a superquorum, and acknowledged by %v")
	}
}

func (c *clients) acknowledge(m *member, number uint64, format string) {
	delete(m.waiting, number)
	if c.isAcked(number) {
		return
	}
	c.acked = append(c.acked, ack{number, c.w.Now()})
	c.w.journal.acked()
	if c.told {
		c.w.journal.add(KindNote, m.id, format, number, m.id)
	}
	if c.on {
		c.w.After(c.w.delay*2, c.write)
	}
}

// answeredSince reports whether a write was acknowledged at a time or later.
func (c *clients) answeredSince(at time.Duration) bool {
	return len(c.acked) > 0 && c.acked[len(c.acked)-1].at >= at
}

// stall is the longest time without an acknowledged write, and when it began.
func (c *clients) stall() (longest, since time.Duration) {
	last := c.begun
	for _, a := range c.acked {
		if a.at < c.begun {
			continue
		}
		if a.at > c.closed {
			break
		}
		if wait := a.at - last; wait > longest {
			longest, since = wait, last
		}
		last = a.at
	}
	if wait := c.closed - last; wait > longest {
		longest, since = wait, last
	}
	return longest, since
}

// refused passes a refusal to the client or the operator that asked.
func (w *world) refused(m *member, refusal *consensus.Refusal) {
	if refusal.ID.Session == operatorSession {
		w.operator.refused(m, refusal.Reason)
		return
	}
	w.clients.refused(m, refusal)
}
