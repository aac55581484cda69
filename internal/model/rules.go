package model

// Rules names every rule of the protocol that can be dropped or changed. The zero value is the full protocol.
type Rules struct {
	// A witness accepting a record.
	WitnessAnyTerm         bool // of another term
	WitnessAnyConfig       bool // of another config id
	WitnessNoVoter         bool // though it is no voter
	WitnessNoPoolOrder     bool // without comparing its revision with the pool
	WitnessNoLogOrder      bool // without comparing its revision with the bound of the log
	WitnessNoPoolKeys      bool // without comparing its footprint with the pool
	WitnessNoLogKeys       bool // without comparing its footprint with the log
	WitnessReplaces        bool // in the place of an earlier attempt of the proposal
	WitnessVolatile        bool // the pool is lost in a crash
	AcceptWhileChanging    bool // witness and leader: while a configuration entry is not applied
	AcceptWhileJoint       bool // witness and leader: while the configuration is joint
	AcceptWhileTransfer    bool // leader: while it hands leadership over
	LeaderAnyTerm          bool
	LeaderAnyConfig        bool
	LeaderNoLogOrder       bool
	LeaderNoPoolOrder      bool
	LeaderNoLogKeys        bool
	LeaderNoPoolKeys       bool
	LeaderNoDedup          bool // does not look for the proposal in its log and results
	LeaderOpensEarly       bool // opens the fast path before its no-op commits
	LeaderVolatile         bool // a fast entry at the end of its log is lost in a crash
	LeaderEvaluatesLate    bool // evaluates on whatever is applied when it answers
	ProposerAnyTerm        bool // adds up answers of different terms
	ProposerAnyConfig      bool // adds up answers of different configurations
	ProposerAnyAttempt     bool // adds up answers to different attempts
	ProposerCountsLearners bool
	SuperquorumLess        bool // one member less decides
	JointDecidesInNew      bool // joint: a superquorum of the new set is enough

	// Applying and forgetting.
	SkipTakesNext    bool // an exact entry that came too late gets the next revision
	SkipApplies      bool // an exact entry that came too late is applied at its revision
	SkipIsResult     bool // a skipped entry counts as the proposal's result
	ApplyTwice       bool // a second entry of a proposal is applied again
	ForgetAtAppend   bool // a record leaves when its proposal is appended
	ForgetByID       bool // a skipped entry removes every record of its proposal
	ForgetAtReport   bool // a record leaves when it is reported to the leader
	TruncateForgets  bool // truncation does not move answered entries back into the pool
	TruncateKeepsAll bool // truncation moves back entries that others answered, too
	AbortNoRow       bool // an abort leaves no row in the table of results
	AbortEarly       bool // a leader aborts before its no-op commits
	AbortLogged      bool // a leader aborts what its log holds

	// Elections.
	VoteWithoutLog    bool // a vote lacks the voter's own answered entries
	VoteWithout       bool // a vote carries no records
	VoteCarriesAll    bool // a vote carries every exact entry
	RecoverMore       bool // one holder more than the recovery quorum
	RecoverLess       bool // one holder less
	RecoverAnyConfig  bool // records of any config id
	RecoverInEither   bool // joint: in one of the sets
	RecoverInNew      bool // joint: in the new set
	RecoverDescending bool
	RecoverAfterNoop  bool
	RecoverByID       bool // holders of different attempts are added up
	RecoverLoggedByID bool // what the log holds under another revision is not recovered

	// The log.
	AppendSkips      bool // entries up to the own commit index are acknowledged unseen
	InferOldTerm     bool // a member infers the commit of entries of earlier terms
	InferUnstable    bool // a member infers while a change is not applied, or joint
	InferLeaderTail  bool // a leader is counted before its disk is done
	HintUnchecked    bool // a commit hint is believed without the entry's term
	SnapshotForgets  bool // an installed snapshot does not move answered entries into the pool
	SnapshotNoTable  bool // a snapshot lacks the table of results
	SnapshotTooFar   bool // a snapshot holds entries that are not applied
	SnapshotKeepsAll bool // records that the snapshot decided stay in the pool

	// Configuration.
	ConfigIDCounts   bool // a config id is the number of changes
	ChangeEarly      bool // before the no-op commits
	ChangeTwice      bool // while another change is not committed
	JointElectsInNew bool // joint: elections and commits in the new set only
	UncheckedL5      bool // law L5 is not checked: does another break, too?

	// Reads.
	ReadCommitIndex    bool // the index is the leader's commit index
	ReadUncommitted    bool // the index is handed out before it commits
	ReadUnconfirmed    bool // the leader asks nobody
	ReadAnyAsker       bool // a question from a later term counts as an echo
	ReadUnchecked      bool // the reader confirms the leader's index by itself, without comparing its log
	ReadChecked        bool // the same with the comparison of the last entry's term
	ReadOldAnswers     bool // voters' answers to an earlier question count
	ReadPastPool       bool // a majority that holds records counts as knowing no more than its logs
	ReadOtherConfig    bool // voters' answers under other configurations count
	LeaseOwnPatience   bool // a leader takes its own patience for everybody's
	LeaseNotBarred     bool // the lease holds on after a transfer began
	LeaseForgotten     bool // a member that restarts forgets its promise
	LeaseVotesAnyway   bool // members vote without waiting for the lease's end
	RecoveryDrops      bool // recovery from lost quorum adopts no records
	RecoveryOwnOnly    bool // it adopts the survivor's, not those of compared directories
	RecoveryDescending bool
	RecoverySameEpoch  bool // members that were given up still count
	IgnoreBinding      bool // a member whose disk is empty votes and acknowledges under its old id
	IgnoreLives        bool // so does one with an old copy of its disk
	FoundByMajority    bool // a majority with empty disks begins the cluster once more
}
