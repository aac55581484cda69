package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/filter"
)

// gate says which messages are looked at.
type gate struct {
	opts    *Options
	clock   *clock
	hard    *hardState
	soft    *softState
	configs *configs.History
	elect   *election
	peers   *peerSet
	stats   *stats
}

// judge drops a message that must not be looked at, and counts it.
func (g *gate) judge(m *consensus.Message) (dropped bool) {
	if g.opts.Faults.BelieveMessages {
		return false
	}
	at := filter.Receiver{
		Term: g.hard.term, Leader: g.soft.leader, Unled: g.elect.longUnled(),
		Joins: len(g.configs.Config().Members) == 0, KnowsSender: g.knows(m.From), SenderRemoved: g.configs.IsTombstone(m.From),
	}
	why, dropped := at.Judge(m)
	if dropped {
		g.stats.dropped.Count(why)
	}
	return dropped
}

// hearsNow reports whether this member leads with its quorum alive, or hears a leader.
func (g *gate) hearsNow() bool {
	if g.soft.role == Leader {
		return g.peers.quorumHeard()
	}
	return g.elect.heardLately()
}

// knows reports whether a member is, or was, part of a configuration that this member's log knows of.
func (g *gate) knows(id consensus.MemberID) bool {
	return id == g.opts.ID || g.peers.find(id) != nil || g.configs.Knows(id)
}

// mustIgnore reports whether a vote is asked for while a leader seems alive.
func (g *gate) mustIgnore(vote *consensus.Message) bool {
	switch {
	case vote.Force && vote.Term > g.hard.term:
		g.elect.releasePromise() // the leader of the term before asked for it, and trusts no lease any more
		return false
	case vote.Term > g.hard.term:
		return g.elect.hearsLeader()
	}
	return vote.Term == g.hard.term && !vote.Force && g.elect.promised()
}

// fromLeaving reports whether m is from a removed member that this leader still feeds, and about what it is fed, or what
// its clients asked it for just before.
func (g *gate) fromLeaving(m *consensus.Message) bool {
	switch m.Kind {
	case consensus.MsgAppendReply, consensus.MsgHeartbeatReply, consensus.MsgSnapshotReply, consensus.MsgPropose,
		consensus.MsgFastPropose, consensus.MsgRead:
		return g.soft.role == Leader && g.peers.find(m.From) != nil
	}
	return false
}
