package rules

// Rule is a safety rule that can be dropped.
type Rule uint8

// The rules, grouped by topic. A new one goes where it belongs: nothing depends on the order.
const (
	None Rule = iota // no rule: nothing drops it

	// Elections and the log.
	VoteTwice
	CommitOldTerm
	AckBeforeDurable
	SkipBelowCommit
	LogAnyOrder
	TruncateKeepsWrites
	BelieveMessages
	TrustDenial
	LossByRounds
	DurableTooSoon
	InferOldTerm
	InferUnstable
	InferLeaderTail
	HintUnchecked
	SnapshotForgets
	SnapshotNoTable
	SnapshotTooFar
	SnapshotKeepsAll

	// Members and their changes.
	CountLearners
	CountSelf
	ChangeInOldTerm
	TwoChanges
	UnionOfJoint
	IncomingDecides
	JointElectsInNew
	DirectSwitch
	LeaveEarly
	NoNotice
	VotesWithoutCommit
	OffBeforeSettled
	ReuseConfigIDs

	// Reads.
	SkipReadRound
	ReadUncommitted
	ReadAnyAsker
	ReadCommitIndex
	ReadForgetsAnswers
	ReadBelowNoop
	ReadOldEnds
	ReadWhileChanging
	ReadLeaderIndex
	ReadChecked
	CountOldAnswers
	ReadPastPool
	ReadOtherConfig
	OwnLeaseTicks
	LeaseNotBarred
	LeaseForgotten
	LeaseVotesAnyway

	// The fast path: a voter that records a proposal.
	WitnessNoPoolKeys
	WitnessNoLogKeys
	WitnessNoPoolOrder
	WitnessNoLogOrder
	WitnessNoLogID
	WitnessReplaces
	WitnessVolatile
	WitnessAnyTerm
	WitnessAnyConfig
	WitnessNoVoter
	SessionsCommute
	SessionsMeetAll
	AnyWidth
	NoShares
	NoBlame
	HastyOrphans

	// The fast path: a leader that answers before the commit.
	AcceptWhileChanging
	AcceptWhileJoint
	AcceptWhileTransfer
	LeaderAnyTerm
	LeaderAnyConfig
	LeaderNoPoolKeys
	LeaderNoLogKeys
	LeaderNoPoolOrder
	LeaderNoLogOrder
	LeaderNoDedup
	LeaderOpensEarly
	LeaderVolatile
	LeaderEvaluatesLate
	AnswerUnopened

	// The fast path: what counts, and what is applied.
	AnyConfig
	ProposerMixes
	ProposerAnyTerm
	ProposerAnyConfig
	ProposerAnyAttempt
	ProposerAnyPayload
	ProposerCountsLearners
	SuperquorumLess
	JointDecidesInNew
	SkipTakesNext
	SkipApplies
	SkipIsResult
	ApplyTwice

	// The fast path: what is forgotten.
	ForgetAtAppend
	ForgetByID
	ForgetAnyPayload
	ForgetAtReport
	TruncateForgets
	TruncateKeepsAll
	TruncateKeepsBound
	AbortNoRow
	AbortEarly
	AbortLogged

	// The fast path: elections.
	VoteWithout
	VoteWithoutLog
	VoteCarriesAll
	RecoverMore
	RecoverLess
	RecoverAnyConfig
	RecoverInEither
	RecoverInNew
	RecoverDescending
	RecoverAfterNoop
	RecoverByID
	RecoverAnyPayload
	RecoverLoggedByID
	RecoverLoggedAnyPayload

	// Recovery from a lost quorum.
	RecoveryDrops
	RecoveryOwnOnly
	RecoveryDescending
	RecoverySameEpoch

	// Membership and identity.
	IgnoreBinding
	CountUnbound
	FoundByMajority
	ForgetExclusion
	IgnoreLives
	ObeyOtherHistory
	ServeSuperseded
	ObeyNewer
	RememberGhosts
	BelieveAnybody
	HearNonMembers
	AnyAnswerCounts

	// Preferences.
	LeadWhenCordoned

	Count // the number of rules, with None
)
