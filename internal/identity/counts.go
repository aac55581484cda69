package identity

import "github.com/quorate/quorate/internal/consensus"

// Rules are switches that break a rule each, as negative controls. Only tests and the simulator set them.
type Rules struct {
	IgnoreBinding    bool // rule I1: a process that bears the id is the member
	CountUnbound     bool // rule I2: what unbound members say counts
	FoundByMajority  bool // rule I3: the members that were met decide, not all
	ForgetExclusion  bool // rule I3: a founder that heard that the cluster runs founds it again once no running member answers
	IgnoreLives      bool // rule I5: any life of a storage id is welcome
	ObeyOtherHistory bool // a member ends itself on the word of one of another history: Obey
	ServeSuperseded  bool // rule I7: a member without a quorum elects and serves although the cluster was recovered without it
	ObeyNewer        bool // rule I7: a newer epoch ends any member that meets it, also a majority that serves
	BelieveAnybody   bool // rule of evidence: what a process says of itself counts, wherever it comes from
	AnyAnswerCounts  bool // rule of evidence: whatever speaks at the address of a member is the member
	HearNonMembers   bool // rule of evidence: a process whose id no configuration has is heard without proof
	RememberGhosts   bool // rule I7: an epoch that a living quorum has outlived ends the members once they lose that quorum
}

// Counts reports whether a message that came in the name of a member may reach the core of the receiver, whose
// configuration in force is config. storage is what the stream's handshake showed. The sender is no member if its binding is
// another; what an unbound one answers would be counted, so only what it asks passes.
func Counts(config *consensus.Config, m *consensus.Message, storage consensus.StorageID, rules Rules) bool {
	switch config.BindingOf(m.From, storage) {
	case consensus.BindingOther:
		return rules.IgnoreBinding
	case consensus.BindingNone:
		return rules.CountUnbound || !isCounted(m) || m.Kind == consensus.MsgRead && !config.IsVoter(m.From)
	}
	return true
}

// isCounted names what adds to a majority: votes, acknowledgements, echoes, verdicts, and the questions of readers, which are
// echoes, too, if a voter asks. Acknowledgements of learners are not counted, but they must be true all the same.
func isCounted(m *consensus.Message) bool {
	switch m.Kind {
	case consensus.MsgPreVoteReply, consensus.MsgVoteReply:
		return !m.Reject // a refusal only tells the term
	case consensus.MsgAppendReply, consensus.MsgHeartbeatReply, consensus.MsgSnapshotReply, consensus.MsgAcknowledged,
		consensus.MsgRead, consensus.MsgLogQueryReply, consensus.MsgRecorded, consensus.MsgFast:
		return true
	}
	return false
}
