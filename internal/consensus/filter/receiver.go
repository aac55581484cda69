package filter

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Bounds of the numbers in a message. Terms, indexes and revisions grow by one at a time, so that no sound cluster comes near,
// and sums of a few of them do not overflow.
const (
	MaxNumber = 1 << 62
	// maxTermJump is how much higher than the own term the term of a message may be: a cluster that elects once a second
	// gets there in 136 years, and a process that sends forged terms needs a billion messages, each followed by a sync, to get
	// to MaxNumber. It leaves room for recoveries from quorum loss, which raise the term by 1<<20 each. A member that holds no
	// configuration yet has no term to compare with.
	maxTermJump = 1 << 32
)

// Receiver is what is known of a message's receiver when the message is judged.
type Receiver struct {
	Term        consensus.Term
	Leader      consensus.MemberID // of that term, or NoMember
	Unled       bool               // it has heard no leader for so long that it takes one of whom its log does not know
	Joins       bool               // it knows no configuration yet
	KnowsSender bool               // a member of any configuration in the log, or removed
	// SenderRemoved: it may still have to commit its own removal, as the leader that is heard. Otherwise it is a leader as one
	// that is not known: any process may bear its id.
	SenderRemoved bool
}

// Judge returns why a message is dropped, or false.
func (at *Receiver) Judge(m *consensus.Message) (Reason, bool) {
	switch {
	case !wellFormed(m):
		return Malformed, true
	case !at.Joins && m.Term > at.Term && m.Term-at.Term > maxTermJump:
		return TermJump, true
	case !at.KnowsSender && !at.Joins && !at.fromNonMember(m):
		return NonMember, true
	case at.SenderRemoved && (m.Kind.FromLeader() || m.Kind == consensus.MsgRemoved) && !at.Unled && m.From != at.Leader:
		return NonMember, true
	case m.Kind.FromLeader() && m.Term == at.Term && at.Leader != consensus.NoMember && at.Leader != m.From:
		return Leader, true
	}
	return 0, false
}

// fromNonMember reports whether a member may send m of whom the receiver's log does not know yet: a candidate, or a leader,
// that was added after the end of that log. A receiver that has heard a leader lately has no need of one that no evidence
// speaks for: the members that it knows elect another one, if they can. Native clients offer proposals of their own sessions.
func (at *Receiver) fromNonMember(m *consensus.Message) bool {
	switch m.Kind {
	case consensus.MsgPreVote, consensus.MsgVote:
		return at.Unled && !m.Force // a leader hands over to a member that it knows, by votes of those that know it, too
	case consensus.MsgAppend, consensus.MsgHeartbeat, consensus.MsgSnapshotOffer:
		free := m.Term > at.Term || at.Leader == consensus.NoMember
		return m.Term < at.Term || m.From == at.Leader || free && at.Unled
	case consensus.MsgRemoved:
		return at.Unled
	case consensus.MsgRecord, consensus.MsgFastPropose:
		return !slices.ContainsFunc(m.Proposals, func(p consensus.Proposal) bool { return !p.ID.Session.OfClient() })
	}
	return false
}
