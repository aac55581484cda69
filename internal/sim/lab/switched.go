package lab

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// ProtocolSwitched is a sixth protocol, an experiment of the laboratory (ADR 0063): one entry with both sets of voters as by
// activate, and none after it. A member that knows that the entry has committed has switched, notes that on its disk, and
// reports it to the leader; once a majority of the new voters has, members that left may be switched off. Votes do not carry
// the commit index. Instead a voter that has switched refuses a candidate with an equal log that has not.
const ProtocolSwitched = consensus.ExperimentSwitched

// noteSwitch notes on disk that the change is known here to have committed, and then reports it to the leader.
func (m *member) noteSwitch() {
	at := m.status.ConfigID.Index
	if !m.w.broken.switched || m.status.ConfigID.Stage == 0 || m.disk.switched >= at || m.switching >= at {
		return
	}
	m.switching = at
	m.soon(m.w.jitter(m.w.pace.sync), func() {
		m.disk.switched = at
		m.tellSwitched()
	})
}

// tellSwitched reports the switch to the leader; every answer to the leader repeats that.
func (m *member) tellSwitched() {
	leader := m.status.Leader
	if leader == m.id || leader == consensus.NoMember {
		m.hearSwitched(m.id, m.disk.switched)
		return
	}
	w := m.w
	w.counts.Messages++
	a := w.journal.arrow(m.id, leader, "has switched, on its disk", true)
	if w.net.cut(m.id, leader) {
		a.Lost = true
		return
	}
	at := m.disk.switched
	w.when(w.net.arrival(m.id, leader), func() {
		to := w.member(leader)
		if !to.running() || w.net.cut(m.id, leader) {
			a.Lost = true
			return
		}
		a.Arrived = w.Now() - w.origin
		to.hearSwitched(m.id, at)
	})
}

// hearSwitched notes, on a leader, up to which change a member has switched.
func (m *member) hearSwitched(from memberID, at consensus.Index) {
	if at > m.switchedBy[from] {
		m.switchedBy[from] = at
		m.w.operator.watch(m)
	}
}

// enoughSwitched reports whether m leads and knows that a majority of the new voters has switched.
func (m *member) enoughSwitched() bool {
	if m.status.Role != raft.Leader {
		return false
	}
	m.switchedBy[m.id] = m.disk.switched
	count := 0
	for _, id := range m.status.Config.Voters {
		if m.switchedBy[id] >= m.status.ConfigID.Index {
			count++
		}
	}
	return count > len(m.status.Config.Voters)/2
}

// switchedTo returns the change that m knows to have committed, as it uses it as a candidate and a voter. The report to the
// leader is about the change on the disk.
func (m *member) switchedTo() consensus.Index {
	if m.status.ConfigID.Stage > 0 {
		return max(m.disk.switched, m.status.ConfigID.Index)
	}
	return m.disk.switched
}

// prefer makes a vote one that the receiver refuses, if the receiver has switched, and the candidate, whose log is equal, has
// not.
func (m *member) prefer(vote *message, switched consensus.Index) {
	if m.switchedTo() > switched && vote.Last == m.lastPosition() && vote.Last.Index > 0 {
		vote.Last.Index--
	}
}

// exchange handles an arriving message as members of the experiment do, beside their replicas.
func (m *member) exchange(msg *message, switched consensus.Index) {
	switch msg.Kind {
	case consensus.MsgPreVote, consensus.MsgVote:
		m.prefer(msg, switched)
	case consensus.MsgAppendReply, consensus.MsgHeartbeatReply:
		m.hearSwitched(msg.From, switched)
	}
}

// tellsTooEarly reports whether a leader would notify a member of its removal while the member may still be needed.
func (w *world) tellsTooEarly(m *message) bool {
	return w.broken.switched && m.Kind == consensus.MsgRemoved && w.operator.phase != phaseSettled
}
