package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/fast"
)

// Messages come from outside. Before anything else looks at one, it is judged here: by its shape, which needs no state, and
// by its sender and term, for which a few facts of the receiver are enough. What passes may still be wrong or hostile, if it
// bears the name of a member; it can then cost an election, but reach no invariant, no overflow and no unbounded table.
// Whether the sender is who it says is the transport's concern.

// Bounds of the numbers in a message. Terms, indexes and revisions grow by one at a time, so that no sound cluster comes near,
// and sums of a few of them do not overflow.
const (
	maxNumber = 1 << 62
	// maxTermJump is how much higher than the own term the term of a message may be: a cluster that elects once a second
	// gets there in 136 years, and whoever sends forged terms needs a billion messages, each followed by a sync, to get to
	// maxNumber. It leaves room for recoveries from quorum loss, which raise the term by 1<<20 each. A member that holds no
	// configuration yet has no term to compare with.
	maxTermJump = 1 << 32
	// maxOrphansTold is how many proposals one message may ask about; see fast.MaxOrphans.
	maxOrphansTold = fast.MaxOrphans
)

// receiver is what is known of a message's receiver when the message is judged.
type receiver struct {
	term        consensus.Term
	leader      consensus.MemberID // of that term, or NoMember
	hearsLeader bool               // or leads: it helps to depose nobody
	joins       bool               // it knows no configuration yet
	knowsSender bool               // a member of any configuration in the log, or removed
}

// judge returns why a message is dropped, or false.
func (at *receiver) judge(m *consensus.Message) (RefusedMessage, bool) {
	switch {
	case !wellFormed(m):
		return RefusedMalformed, true
	case !at.joins && m.Term > at.term && m.Term-at.term > maxTermJump:
		return RefusedTermJump, true
	case !at.knowsSender && !at.joins && !at.fromStranger(m):
		return RefusedStranger, true
	case fromLeader(m.Kind) && m.Term == at.term && at.leader != consensus.NoMember && at.leader != m.From:
		return RefusedLeader, true
	}
	return 0, false
}

// fromStranger reports whether a member may send m of whom the receiver's log does not know yet: a candidate, or a leader,
// that was added after the end of that log. Who hears its leader has no need of another one. Native clients offer proposals of
// their own sessions.
func (at *receiver) fromStranger(m *consensus.Message) bool {
	switch m.Kind {
	case consensus.MsgPreVote, consensus.MsgVote:
		return true
	case consensus.MsgAppend, consensus.MsgHeartbeat, consensus.MsgSnapshotOffer:
		unled := m.Term > at.term || at.leader == consensus.NoMember
		return m.Term < at.term || m.From == at.leader || (unled && !at.hearsLeader)
	case consensus.MsgRemoved:
		return !at.hearsLeader
	case consensus.MsgRecord, consensus.MsgFastPropose:
		return !slices.ContainsFunc(m.Proposals, func(p consensus.Proposal) bool { return !p.ID.Session.OfClient() })
	}
	return false
}

// wellFormed reports whether a member can mean m.
func wellFormed(m *consensus.Message) bool {
	if m.Kind < consensus.MsgPreVote || m.Kind > consensus.MsgOrphans || m.Kind == retiredKind {
		return false
	}
	for _, n := range [...]uint64{
		uint64(m.Term), uint64(m.Commit), uint64(m.Durable), uint64(m.Received), m.Round,
		uint64(m.Config.Index), uint64(m.Config.Term),
	} {
		if n > maxNumber {
			return false
		}
	}
	for _, mark := range [...]consensus.Mark{m.Prev, m.Last, m.Match, m.Refused, m.Hint, m.Committed} {
		if mark.Index > maxNumber || mark.Term > maxNumber || (mark.Index == 0 && mark.Term != 0) {
			return false
		}
	}
	return entriesFormed(m) && listsFormed(m) && (m.Kind != consensus.MsgSnapshotOffer || offerFormed(m))
}

// retiredKind was the index of a leader that its reader had to confirm.
const retiredKind = 21

// entriesFormed checks what an append brings: consecutive after Prev, of terms that never fall and end with the leader's.
func entriesFormed(m *consensus.Message) bool {
	if len(m.Entries) > 0 && m.Kind != consensus.MsgAppend {
		return false
	}
	before := m.Prev
	for i := range m.Entries {
		e := &m.Entries[i]
		switch {
		case e.Index != before.Index+1 || e.Term < before.Term || e.Term > m.Term || e.Term == 0:
			return false
		case e.Kind < consensus.EntryCommand || e.Kind > consensus.EntryAbort:
			return false
		case e.ExactRevision != 0 && (e.Kind != consensus.EntryCommand || e.Proposal.IsZero() || e.ExactRevision > maxNumber):
			return false
		}
		before = e.Mark()
	}
	return before.Index <= maxNumber
}

func listsFormed(m *consensus.Message) bool {
	if m.Kind == consensus.MsgOrphans && len(m.Verdicts) > maxOrphansTold {
		return false
	}
	for i := range m.Verdicts {
		if m.Verdicts[i].Revision > maxNumber {
			return false
		}
	}
	for i := range m.Records {
		if r := &m.Records[i]; r.Proposal.IsZero() || r.Revision == 0 || r.Revision > maxNumber || r.Term > m.Term {
			return false
		}
	}
	for i := range m.Refusals {
		if c := m.Refusals[i].Config; c.Index > maxNumber || c.Term > maxNumber {
			return false
		}
	}
	for i := range m.Reads {
		if m.Reads[i].Index > maxNumber {
			return false
		}
	}
	return true
}

// offerFormed checks what a snapshot stands for: a configuration that somebody can decide by.
func offerFormed(m *consensus.Message) bool {
	s := m.Snapshot
	if s == nil || s.Mark.Index == 0 || s.Mark.Index > maxNumber || s.Mark.Term == 0 || s.Mark.Term > m.Term ||
		s.ConfigID.Index > s.Mark.Index || len(s.Config.Voters) == 0 {
		return false
	}
	for _, ids := range [...][]consensus.MemberID{s.Config.Voters, s.Config.Outgoing, s.Config.Learners} {
		for _, id := range ids {
			if _, named := s.Config.Member(id); id == consensus.NoMember || !named {
				return false
			}
		}
	}
	return true
}

// filter says which messages are looked at.
type filter struct {
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
func (f *filter) judge(m *consensus.Message) (dropped bool) {
	if f.opts.Faults.BelieveMessages {
		return false
	}
	at := receiver{
		term: f.hard.term, leader: f.soft.leader, hearsLeader: f.hearsNow(), joins: len(f.configs.Config().Members) == 0,
		knowsSender: f.knows(m.From),
	}
	why, dropped := at.judge(m)
	if dropped {
		f.stats.dropped.count(why)
	}
	return dropped
}

// hearsNow reports whether this member leads with its quorum alive, or hears a leader.
func (f *filter) hearsNow() bool {
	if f.soft.role == Leader {
		return f.peers.quorumHeard()
	}
	return f.soft.leader != consensus.NoMember && !f.elect.suspect && f.clock.now-f.elect.heardAt < uint64(f.opts.ElectionTicks)
}

// knows reports whether a member is, or was, part of a configuration that this member's log knows of.
func (f *filter) knows(id consensus.MemberID) bool {
	return id == f.opts.ID || f.peers.find(id) != nil || f.configs.Knows(id)
}

// mustIgnore reports whether a vote is asked for while a leader seems alive.
func (f *filter) mustIgnore(vote *consensus.Message) bool {
	switch {
	case vote.Force && vote.Term > f.hard.term:
		f.elect.patientUntil = 0 // the leader of the term before asked for it, and trusts no lease any more
		return false
	case vote.Term > f.hard.term:
		return f.elect.hearsLeader()
	}
	return vote.Term == f.hard.term && !vote.Force && f.elect.promised()
}

// takesLeaveOf reports whether m is from a removed member that this leader still feeds, and about what it is fed, or what
// its clients asked it for just before.
func (f *filter) takesLeaveOf(m *consensus.Message) bool {
	switch m.Kind {
	case consensus.MsgAppendReply, consensus.MsgHeartbeatReply, consensus.MsgSnapshotReply, consensus.MsgPropose,
		consensus.MsgFastPropose, consensus.MsgRead:
		return f.soft.role == Leader && f.peers.find(m.From) != nil
	}
	return false
}
