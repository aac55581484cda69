package lab

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// network carries messages with a constant delay and a little jitter, in order on each link.
type network struct {
	w          *world
	groups     [][]memberID // if there are any, only members of the same group hear each other
	lagging    []memberID
	noConfig   []memberID // never get an append that carries a configuration
	arrived    map[[2]memberID]time.Duration
	onlyOne    consensus.Index // an append with this entry reaches one member only, until the stage is over
	onlyMember memberID
}

func newNetwork(w *world) network {
	return network{w: w, arrived: map[[2]memberID]time.Duration{}}
}

// cut reports whether a and b cannot hear each other.
func (n *network) cut(a, b memberID) bool {
	if len(n.groups) == 0 {
		return false
	}
	for _, group := range n.groups {
		if slices.Contains(group, a) {
			return !slices.Contains(group, b)
		}
	}
	return true
}

// stopped reports whether a fault keeps this message from its receiver.
func (n *network) stopped(m *message) bool {
	if n.cut(m.From, m.To) {
		return true
	}
	if m.Kind != consensus.MsgAppend {
		return false
	}
	if slices.Contains(n.noConfig, m.To) && slices.ContainsFunc(m.Entries, isConfig) {
		return true
	}
	if n.onlyOne > 0 && slices.ContainsFunc(m.Entries, func(e entry) bool { return e.Index >= n.onlyOne }) {
		if n.onlyMember == consensus.NoMember {
			n.onlyMember = m.To
		}
		return m.To != n.onlyMember
	}
	return false
}

func isConfig(e entry) bool { return e.Kind == consensus.EntryConfig }

func (n *network) delayOf(from, to memberID) time.Duration {
	delay := n.w.delay
	if slices.Contains(n.lagging, from) || slices.Contains(n.lagging, to) {
		delay *= lagFactor
	}
	return n.w.jitter(delay)
}

// arrival is when something that leaves now gets there: not before what left earlier.
func (n *network) arrival(from, to memberID) time.Duration {
	link := [2]memberID{from, to}
	at := max(n.w.Now()+n.delayOf(from, to), n.arrived[link])
	n.arrived[link] = at
	return at
}

func (n *network) sendAll(messages []message) {
	n.w.judge.Sent(messages)
	for _, m := range messages {
		n.send(m)
	}
}

// send puts a message on its way.
func (n *network) send(m message) {
	w := n.w
	if w.tellsTooEarly(&m) {
		return
	}
	w.counts.note(m.Kind)
	switched := w.member(m.From).disk.switched
	if m.Kind == consensus.MsgPreVote || m.Kind == consensus.MsgVote {
		switched = w.member(m.From).switchedTo()
	}
	if w.broken.dropped[rules.VotesWithoutCommit] {
		forgetCommit(&m)
	}
	a := w.journal.sent(&m)
	if n.stopped(&m) {
		a.Lost = true
		return
	}
	w.when(n.arrival(m.From, m.To), func() {
		to := w.member(m.To)
		if !to.running() || n.cut(m.From, m.To) {
			a.Lost = true
			return
		}
		a.Arrived = w.Now() - w.origin
		if w.broken.switched {
			to.exchange(&m, switched)
		}
		to.receive(m, a)
	})
}

// forgetCommit makes votes what they are in the Raft paper: they do not say what is committed.
func forgetCommit(m *message) {
	switch m.Kind {
	case consensus.MsgPreVote, consensus.MsgPreVoteReply, consensus.MsgVote, consensus.MsgVoteReply:
		m.Committed = position{}
	}
}

// broke tells everybody who runs that the connections of a dead process broke.
func (n *network) broke(dead memberID) {
	for _, m := range n.w.members {
		if m.id == dead || !m.running() || n.cut(dead, m.id) {
			continue
		}
		n.w.when(n.arrival(dead, m.id), func() { m.step(raft.Unreachable{Member: dead}) })
	}
}
