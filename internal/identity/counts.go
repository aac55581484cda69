package identity

import "github.com/quorate/quorate/internal/consensus"

// Rules are those of package rules, by their names, that a test or the simulator drops.
type Rules struct {
	IgnoreBinding    bool // I1
	CountUnbound     bool // I2
	FoundByMajority  bool // I3
	ForgetExclusion  bool // I3
	IgnoreLives      bool // I5
	ObeyOtherHistory bool // see Obey
	ServeSuperseded  bool // I7
	ObeyNewer        bool // I7
	BelieveAnybody   bool // of evidence
	AnyAnswerCounts  bool // of evidence
	HearNonMembers   bool // of evidence
	RememberGhosts   bool // I7
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
