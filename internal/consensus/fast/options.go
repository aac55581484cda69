package fast

import "github.com/quorate/quorate/internal/consensus"

// Bounds of the records that a member keeps for others. A proposal beyond them takes the slow path.
const (
	maxPoolRecords    = 4096
	maxPoolBytes      = 2 << 20
	maxUnappliedBytes = 4 << 20 // of entries, which a vote may have to carry
	maxUnapplied      = 16 << 10
)

// ProposalState is the state machine's knowledge of a proposal.
type ProposalState uint8

// The states.
const (
	ProposalUnknown   ProposalState = 0
	ProposalApplied   ProposalState = 1 // applied: it has a result
	ProposalRetired   ProposalState = 2 // its session is over: none of its proposals will ever be applied again
	ProposalNoSession ProposalState = 3 // its session is not open in the applied state: it gets no answer
)

// decided reports whether no later entry of the proposal can change anything.
func (s ProposalState) decided() bool { return s == ProposalApplied || s == ProposalRetired }

// Options tie the fast path to the state machine. The zero value is for members that never took part in the fast path.
type Options struct {
	// Closed refuses new proposals of the fast path. Records and answers that were given before still go to the next leader,
	// which recovers them.
	Closed bool
	// Footprint returns the keys and leases that a command touches: the same on every member. It is needed wherever State is
	// set.
	Footprint func(payload []byte) consensus.Footprint
	// Revises reports whether a command may take a revision; nil if all may.
	Revises func(payload []byte) bool
	// State asks the state machine, which may have applied more entries than this replica knows. Nil: no fast path.
	State func(id consensus.ProposalID) ProposalState
}

// Counts are the numbers of the fast path's events since the start.
type Counts struct {
	Tried, Decided uint64 // proposals of this member: offered, decided on the fast path
	Overtaken      uint64 // committed before enough voters had answered; all answers that came named one revision
	Disagreed      uint64 // committed after answers had named different revisions
	Accepted       uint64 // records taken, of any proposer
	Answered       uint64 // proposals taken as a leader
	Recovered      uint64
	Aborted        uint64
	Barred         uint64                           // offers of proposers whose records were aborted again and again
	Refused        [consensus.RefusedReasons]uint64 // refusals of proposals of this member, by reason
	Held           int                              // records that this member keeps now
}
