package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// judge reports whether a message is to be dropped unread, and counts it.
func (r *Replica) judge(m *consensus.Message) (dropped bool) {
	if r.opts.Dropped[rules.BelieveMessages] {
		return false
	}
	at := filter.Receiver{
		Term: r.hard.term, Leader: r.leader, Unled: r.longUnled(),
		Joins: len(r.configs.Config().Members) == 0, KnowsSender: r.knows(m.From), SenderRemoved: r.configs.IsTombstone(m.From),
	}
	why, dropped := at.Judge(m)
	if dropped {
		r.stats.dropped.Count(why)
	}
	return dropped
}

// hearsNow reports whether this member leads with its quorum alive, or follows a leader that it heard lately.
func (r *Replica) hearsNow() bool {
	if r.lead != nil {
		return r.lead.quorumHeard()
	}
	return r.heardLately()
}

// knows reports whether a member is, or was, part of a configuration that this member's log knows of.
func (r *Replica) knows(id consensus.MemberID) bool {
	return id == r.opts.ID || r.fed(id) != nil || r.configs.Knows(id)
}

// mustIgnore reports whether to ignore a vote request because a leader seems alive that did not ask for the election.
func (r *Replica) mustIgnore(vote *consensus.Message) bool {
	if vote.Force {
		return false
	}
	return (vote.Term > r.hard.term && r.hearsLeader()) || (vote.Term == r.hard.term && r.promised())
}

// fromLeaving reports whether m is from a removed member that this leader still replicates to: about its log, or a request that
// its clients made just before.
func (r *Replica) fromLeaving(m *consensus.Message) bool {
	switch m.Kind {
	case consensus.MsgAppendReply, consensus.MsgHeartbeatReply, consensus.MsgSnapshotReply, consensus.MsgPropose,
		consensus.MsgFastPropose, consensus.MsgRead:
		return r.fed(m.From) != nil
	}
	return false
}

// handleRemoved believes a member that says that this one was removed, unless this member hears a leader, or leads with its
// quorum alive: then it learns of its removal from its log, or from that leader. A survivor that was recovered apart from a
// living majority must not stop it.
func (r *Replica) handleRemoved(m *consensus.Message) {
	if r.hearsNow() && m.From != r.leader && !r.opts.Dropped[rules.BelieveMessages] {
		r.stats.dropped.Count(filter.Removal)
		return
	}
	if !r.elect.removed {
		r.elect.removed = true
		r.out.event(Removed{By: m.From})
	}
}
