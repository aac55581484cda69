package fast

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/tally"
)

// Bounds of what a member records for others. A proposal beyond goes the slow way.
const (
	maxPoolRecords    = 4096
	maxPoolBytes      = 2 << 20
	maxUnappliedBytes = 4 << 20 // of entries, which a vote may have to carry
	maxUnapplied      = 16 << 10
)

// ProposalState is what the state machine knows of a proposal.
type ProposalState uint8

// The states.
const (
	ProposalUnknown   ProposalState = 0
	ProposalApplied   ProposalState = 1 // applied: it has a result
	ProposalRetired   ProposalState = 2 // its session is over: nothing of it will ever be applied again
	ProposalNoSession ProposalState = 3 // its session is not open, as far as is applied here: it is not answered
)

// decided reports whether no later entry of the proposal can change anything.
func (s ProposalState) decided() bool { return s == ProposalApplied || s == ProposalRetired }

// Options tie the fast path to the state machine. The zero value is for members that never took part in it.
type Options struct {
	// Closed takes no new proposals: what is recorded, and what was answered, still goes to whoever leads next, and is
	// recovered.
	Closed bool
	// Footprint returns what a command touches: the same on every member. It is needed wherever State is set.
	Footprint func(payload []byte) consensus.Footprint
	// Revises reports whether a command may take a revision; nil if all may.
	Revises func(payload []byte) bool
	// State asks the state machine, which may have applied more than this replica knows of. Nil: no fast path.
	State func(id consensus.ProposalID) ProposalState
}

// Counts are what the fast path did since the start.
type Counts struct {
	Tried, Decided uint64 // proposals of this member
	Overtaken      uint64 // committed before all had answered; those who had, gave the same revision
	Disagreed      uint64 // committed after not all had given the same revision
	Accepted       uint64 // records of any member
	Answered       uint64 // as a leader
	Recovered      uint64
	Aborted        uint64
	Barred         uint64                           // offers of proposers whose records were given up again and again
	Refused        [consensus.RefusedReasons]uint64 // answers to proposals of this member
	Held           int                              // records, now
}

// Faults drop a rule of the fast path each, as negative controls of the checkers. Tests only. A rule has the name of its
// switch in tests, in the simulator and in the documents, and where package model has it, there, too.
type Faults struct {
	VoterFaults
	LeaderFaults
	RecoveryFaults
	AnyConfig       bool // accept, answer and recover under any configuration, also while one is on its way
	ProposerMixes   bool // add up answers given in other terms or under other configurations
	ReadPastPool    bool // a member that has records says that its log is all it knows
	ReadCommitIndex bool // reads wait for what is known to be committed, not for what is logged
	SessionsCommute bool // the end of a session meets no proposal of it
	SessionsMeetAll bool // the beginning or end of a session meets every proposal
	AnyWidth        bool // records and answered entries may touch ranges
	Tally           tally.Rules
}

// VoterFaults drop rules of a voter that records proposals (voter.go, forget.go).
type VoterFaults struct {
	WitnessNoPoolKeys  bool // it records proposals that conflict with its records
	WitnessNoLogKeys   bool // or with what is logged
	WitnessNoPoolOrder bool // it promises revisions twice
	WitnessNoLogOrder  bool // or revisions that its log has
	WitnessVolatile    bool // it answers before the record is on disk
	NoShares           bool // one proposer may fill the pool
	NoBlame            bool // a proposer may offer what it never proposes for as long as it wants
	HastyOrphans       bool // it asks what became of a record while its proposer may still ask again
}

// LeaderFaults drop rules of a leader that answers proposals before they have committed (leader.go).
type LeaderFaults struct {
	LeaderNoPoolKeys  bool // it ignores its own records
	LeaderNoLogKeys   bool // or what is logged and not applied
	LeaderNoPoolOrder bool // or the revisions of its own records
	LeaderNoLogOrder  bool // or those of what is logged
	LeaderNoDedup     bool // it answers a proposal that it has logged before
	LeaderOpensEarly  bool // it answers before an entry of its term has committed
	AnswerUnopened    bool // it answers for sessions that are not open, and no abort decides such a proposal
}

// RecoveryFaults drop rules of what goes with votes, what a new leader recovers (recover.go), and what is forgotten
// (forget.go).
type RecoveryFaults struct {
	TruncateKeepsBound bool // the revisions of truncated entries stay in the place of those that follow
	VoteWithout        bool // votes carry nothing
	VoteWithoutLog     bool // votes carry no entries that the voter answered as a leader
	TruncateForgets    bool // those are forgotten when they are truncated
	ForgetByID         bool // an entry that was passed over takes all attempts of its proposal out of the pool
	RecoverLoggedByID  bool // an entry of any attempt keeps the others from being recovered
	RecoverByID        bool // all attempts of a proposal are counted together
	RecoverAnyPayload  bool // attempts at one revision are counted together, whatever their payloads are
	RecoverMore        bool // one voter more than needed
	RecoverLess        bool // one voter less
	RecoverDescending  bool
}
