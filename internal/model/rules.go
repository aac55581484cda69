package model

// Rule is a rule of the protocol that can be dropped or changed: the name says what is done without it. The same name stands
// in the table of mutations and in docs/simulation.md.
type Rule uint8

// The rules, by the part of the protocol that they belong to.
const (
	// A witness accepting a record.
	WitnessAnyTerm      Rule = iota // of another term
	WitnessAnyConfig                // of another config id
	WitnessNoVoter                  // though it is no voter
	WitnessNoPoolOrder              // without comparing its revision with the pool
	WitnessNoLogOrder               // without comparing its revision with the bound of the log
	WitnessNoPoolKeys               // without comparing its footprint with the pool
	WitnessNoLogKeys                // without comparing its footprint with the log
	WitnessNoLogID                  // without looking for the proposal in the log, with whatever payload
	WitnessReplaces                 // in the place of an earlier attempt of the proposal
	WitnessVolatile                 // the pool is lost in a crash
	AcceptWhileChanging             // witness and leader: while a configuration entry is not applied
	AcceptWhileJoint                // witness and leader: while the configuration is joint
	AcceptWhileTransfer             // leader: while it hands leadership over
	LeaderAnyTerm
	LeaderAnyConfig
	LeaderNoLogOrder
	LeaderNoPoolOrder
	LeaderNoLogKeys
	LeaderNoPoolKeys
	LeaderNoDedup       // does not look for the proposal in its log and results
	LeaderOpensEarly    // opens the fast path before its no-op commits
	LeaderVolatile      // a fast entry at the end of its log is lost in a crash
	LeaderEvaluatesLate // evaluates on whatever is applied when it answers
	ProposerAnyTerm     // adds up answers of different terms
	ProposerAnyConfig   // adds up answers of different configurations
	ProposerAnyAttempt  // adds up answers to different attempts
	ProposerAnyPayload  // adds up answers at one revision, whatever the payload is
	ProposerCountsLearners
	SuperquorumLess   // one member less decides
	JointDecidesInNew // joint: a superquorum of the new set is enough

	// Applying and forgetting.
	SkipTakesNext    // an exact entry that came too late gets the next revision
	SkipApplies      // an exact entry that came too late is applied at its revision
	SkipIsResult     // a skipped entry counts as the proposal's result
	ApplyTwice       // a second entry of a proposal is applied again
	ForgetAtAppend   // a record leaves when its proposal is appended
	ForgetAnyPayload // a skipped entry removes records at its revision with another payload
	ForgetByID       // a skipped entry removes every record of its proposal
	ForgetAtReport   // a record leaves when it is reported to the leader
	TruncateForgets  // truncation does not move answered entries back into the pool
	TruncateKeepsAll // truncation moves back entries that others answered, too
	AbortNoRow       // an abort leaves no row in the table of results
	AbortEarly       // a leader aborts before its no-op commits
	AbortLogged      // a leader aborts what its log holds

	// Elections.
	VoteWithoutLog   // a vote lacks the voter's own answered entries
	VoteWithout      // a vote carries no records
	VoteCarriesAll   // a vote carries every exact entry
	RecoverMore      // one holder more than the recovery quorum
	RecoverLess      // one holder less
	RecoverAnyConfig // records of any config id
	RecoverInEither  // joint: in one of the sets
	RecoverInNew     // joint: in the new set
	RecoverDescending
	RecoverAfterNoop
	RecoverAnyPayload       // holders of different payloads at one revision are added up
	RecoverLoggedAnyPayload // what the log holds with another payload at that revision is not recovered
	RecoverByID             // holders of different attempts are added up
	RecoverLoggedByID       // what the log holds under another revision is not recovered

	// The log.
	AppendSkips      // entries up to the own commit index are acknowledged unseen
	InferOldTerm     // a member infers the commit of entries of earlier terms
	InferUnstable    // a member infers while a change is not applied, or joint
	InferLeaderTail  // a leader is counted before its disk is done
	HintUnchecked    // a commit hint is believed without the entry's term
	SnapshotForgets  // an installed snapshot does not move answered entries into the pool
	SnapshotNoTable  // a snapshot lacks the table of results
	SnapshotTooFar   // a snapshot holds entries that are not applied
	SnapshotKeepsAll // records that the snapshot decided stay in the pool

	// Configuration.
	ConfigIDCounts   // a config id is the number of changes
	ChangeEarly      // before the no-op commits
	ChangeTwice      // while another change is not committed
	JointElectsInNew // joint: elections and commits in the new set only
	UncheckedL5      // law L5 is not checked: does another break, too?

	// Reads.
	ReadCommitIndex    // the index is the leader's commit index
	ReadForgetsAnswers // it leaves out what the leader answered before it committed
	ReadBelowNoop      // it may lie below the leader's no-op
	ReadOldEnds        // how far disks were before the read counts
	ReadWhileChanging  // while a change is under way disks are counted by the configuration in force at the leader
	ReadUncommitted    // the index is handed out before it commits
	ReadUnconfirmed    // the leader asks nobody
	ReadAnyAsker       // a question from a later term counts as an echo
	ReadUnchecked      // the reader confirms the leader's index by itself, without comparing its log
	ReadChecked        // the same with the comparison of the last entry's term
	ReadOldAnswers     // voters' answers to an earlier question count
	ReadPastPool       // a majority that holds records counts as knowing no more than its logs
	ReadOtherConfig    // voters' answers under other configurations count
	LeaseOwnPatience   // a leader takes its own patience for everybody's
	LeaseNotBarred     // the lease holds on after a transfer began
	LeaseForgotten     // a member that restarts forgets its promise
	LeaseVotesAnyway   // members vote without waiting for the lease's end
	RecoveryDrops      // recovery from lost quorum adopts no records
	RecoveryOwnOnly    // it adopts the survivor's, not those of compared directories
	RecoveryDescending
	RecoverySameEpoch // members that were given up still count
	IgnoreBinding     // a member whose disk is empty votes and acknowledges under its old id
	IgnoreLives       // so does one with an old copy of its disk
	FoundByMajority   // a majority with empty disks begins the cluster once more
	RuleCount         // how many there are
)

// Rules says which rules are dropped. The zero value is the full protocol.
type Rules [RuleCount]bool

// Without returns rules of which some are dropped.
func Without(dropped ...Rule) (r Rules) {
	for _, one := range dropped {
		r[one] = true
	}
	return r
}
