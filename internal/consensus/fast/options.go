package fast

import "github.com/quorate/quorate/internal/consensus"

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
