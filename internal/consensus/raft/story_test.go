package raft_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// story is a schedule in which only the messages that it names arrive: for a rule whose absence shows only after a certain
// order of events. Member 1 leads at first; its no-op is entry 2. Stories are told in testdata/rule_*.txt, and drawn by the
// walks of profile strict.
type story struct {
	*cluster
	laws *fastLaws
	ids  []string
	kept []message // answers of the leader that are late
	late bool
}

func newStory(voters int, dropped rules.Set) *story {
	var ids []memberID
	for id := range voters {
		ids = append(ids, memberID(id+1))
	}
	c := newCluster(ids, nil, func(o *raft.Options) {
		o.ElectionTicks, o.PreVote, o.CheckQuorum, o.StrictReconfig = 1000, false, false, false
		o.MaxMessageBytes = 1
		o.Fast.Footprint, o.Dropped = footprintOf, dropped
	})
	c.shell = dropped
	x := &story{cluster: c, laws: newFastLaws(c)}
	c.trace = &strings.Builder{}
	c.elect(1)
	x.give(1, ids[1:]...)
	return x
}

func (x *story) proposal(name, on string) consensus.Proposal {
	at := slices.Index(x.ids, name)
	if at < 0 {
		x.ids, at = append(x.ids, name), len(x.ids)
	}
	p := proposalOf(uint64(at+1), on+"="+name)
	x.laws.invoke(p.ID)
	return p
}

// fast proposes to all voters; those that receive the offer answer.
func (x *story) fast(name, on string, via memberID, heard ...memberID) {
	x.printf("--- %s on %q through %v, heard by %v", name, on, via, heard)
	x.node(via).step(raft.Propose{Proposals: []consensus.Proposal{x.proposal(name, on)}, Fast: true})
	for range 4 {
		net := x.net
		x.net = nil
		for _, m := range net {
			asks := m.Kind == consensus.MsgRecord || m.Kind == consensus.MsgFastPropose
			switch {
			case m.Kind == consensus.MsgFast && x.late:
				x.kept = append(x.kept, m)
			case isFast(&m) && (!asks || slices.Contains(heard, m.To)):
				x.deliver(m)
			}
		}
		for _, n := range x.nodes {
			for n.drain() {
			}
		}
	}
	x.net = nil
}

// slow logs a proposal on the leader, and nowhere else.
func (x *story) slow(name, on string, leader memberID) {
	x.printf("--- %s on %q logged by %v", name, on, leader)
	x.node(leader).step(raft.Propose{Proposals: []consensus.Proposal{x.proposal(name, on)}})
	for x.node(leader).drain() {
	}
	x.net = nil
}

// leads makes a member lead with the votes of others; its entries reach no member.
func (x *story) leads(id memberID, votes ...memberID) {
	if !x.campaigns(6, id, votes...) {
		panic(fmt.Sprintf("member %v does not lead:\n%s", id, x.trace))
	}
}

// campaigns lets a member try up to so many times.
func (x *story) campaigns(times int, id memberID, votes ...memberID) bool {
	x.printf("--- %v leads with the votes of %v", id, votes)
	for range times {
		if leadsNow(x.node(id)) {
			return true
		}
		x.node(id).step(raft.Campaign{})
		for range 4 {
			net := x.net
			x.net = nil
			for _, m := range net {
				if isVote(&m) && (slices.Contains(votes, m.From) || m.From == id) && (slices.Contains(votes, m.To) || m.To == id) {
					x.deliver(m)
				}
			}
			for _, n := range x.nodes {
				for n.drain() {
				}
			}
		}
		x.net = nil
	}
	return leadsNow(x.node(id))
}

// pass exchanges a leader's log messages with some members, as far as adapt lets them pass; it may change a message.
func (x *story) pass(leader memberID, to []memberID, adapt func(m *message) bool) {
	for range 8 {
		x.passOnce(leader, to, adapt)
	}
}

func (x *story) passOnce(leader memberID, to []memberID, adapt func(m *message) bool) {
	x.node(leader).step(raft.Tick{})
	for range 8 {
		net := x.net
		x.net = nil
		for _, m := range net {
			pair := m.From == leader && slices.Contains(to, m.To) || m.To == leader && slices.Contains(to, m.From)
			if pair && isLog(&m) && adapt(&m) {
				x.deliver(m)
			}
		}
		for _, n := range x.nodes {
			for n.drain() {
			}
		}
	}
	x.net = nil
}

// give replicates a leader's log to members, and its commit index.
func (x *story) give(leader memberID, to ...memberID) {
	x.printf("--- %v gives its log to %v", leader, to)
	x.pass(leader, to, func(*message) bool { return true })
}

// giveUpTo sends no entry after index, and no commit index unless told.
func (x *story) giveUpTo(index consensus.Index, told bool, leader memberID, to ...memberID) {
	x.printf("--- %v gives its log up to %d to %v", leader, index, to)
	x.pass(leader, to, func(m *message) bool {
		if !told {
			m.Commit = 0
		}
		return len(m.Entries) == 0 || m.Entries[len(m.Entries)-1].Index <= index
	})
}

// tell makes the term of a leader known, and nothing of its log.
func (x *story) tell(leader memberID, to ...memberID) {
	x.printf("--- %v tells %v of its term", leader, to)
	x.pass(leader, to, func(m *message) bool {
		m.Entries, m.Commit = nil, 0
		return m.From == leader
	})
}

// falls stops a member for a moment: it loses all that is not on its disk.
func (x *story) falls(id memberID) {
	x.printf("--- %v falls", id)
	n := x.node(id)
	n.crash()
	n.slowDisk = false
	n.start()
}

// arrive delivers the answers that were late.
func (x *story) arrive() {
	kept := x.kept
	x.kept, x.late = nil, false
	for _, m := range kept {
		x.deliver(m)
	}
}

func leadsNow(n *node) bool  { return n.replica != nil && n.replica.Leader() == n.id }
func isFast(m *message) bool { return m.Kind >= consensus.MsgRecord && m.Kind <= consensus.MsgFast }
func isVote(m *message) bool {
	return m.Kind >= consensus.MsgPreVote && m.Kind <= consensus.MsgVoteReply
}
func isProposal(m *message) bool {
	return m.Kind == consensus.MsgPropose || m.Kind == consensus.MsgProposeReply
}

func isLog(m *message) bool {
	switch m.Kind {
	case consensus.MsgAppend, consensus.MsgAppendReply, consensus.MsgHeartbeat, consensus.MsgHeartbeatReply,
		consensus.MsgSnapshotOffer, consensus.MsgSnapshotReply, consensus.MsgAcknowledged, consensus.MsgOrphans:
		return true
	}
	return false
}

func isRead(m *message) bool {
	switch m.Kind {
	case consensus.MsgRead, consensus.MsgReadReply, consensus.MsgLogQuery, consensus.MsgLogQueryReply:
		return true
	}
	return false
}

// take returns the messages under way that pass, and removes them from the net.
func (x *story) take(pass func(m *message) bool) []message {
	var taken []message
	x.net = slices.DeleteFunc(slices.Clone(x.net), func(m message) bool {
		if pass(&m) {
			taken = append(taken, m)
		}
		return pass(&m)
	})
	return taken
}
