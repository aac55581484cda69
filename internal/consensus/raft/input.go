package raft

import "github.com/quorate/quorate/internal/consensus"

// Input is an event for a replica. The sum is closed: the types below are all there are.
type Input interface{ input() }

type (
	// Tick says that one unit of time has passed.
	Tick struct{}

	// Receive is a message from another member. The replica keeps the slices inside it.
	Receive struct{ Message consensus.Message }

	// Propose asks for commands to be put into the log, here or, forwarded, at the leader. A proposal that fails at once comes
	// back in Output.Refusals; one that is lost on the way never comes back, so the proposer retries it under the same id. Fast
	// offers them to all voters at once, which may decide them in one round trip (fast.go).
	Propose struct {
		Proposals []consensus.Proposal
		Fast      bool
	}

	// Read asks for read indexes. IDs grow on this member, also across restarts: a late answer to an old question would be
	// too low for a new one. Spread asks the other voters as well as the leader, which is worth it if they are far away.
	Read struct {
		IDs    []uint64
		Spread bool
	}

	// ChangeConfig proposes a membership change: Kind is EntryConfig, the payload an encoded ChangeRequest.
	ChangeConfig struct{ Proposal consensus.Proposal }

	// Persisted says that the persist request Seq, and all before it, are durable. Took is how long that took from the request
	// on, in microseconds; zero if it is not known. The protocol does not read it; only logs and spans do.
	Persisted struct {
		Seq  uint64
		Took uint32
	}

	// Applied says that the state machine has applied all entries up to Index, and is at Revision then.
	Applied struct {
		Index    consensus.Index
		Revision uint64
	}

	// SnapshotInstalled answers Output.Install. Failed means that the shell has no such snapshot (any more).
	SnapshotInstalled struct {
		Meta       consensus.SnapshotMeta
		Tombstones []consensus.MemberID // of the installed state
		Revision   uint64               // of the installed state
		Failed     bool
	}

	// SnapshotSent answers Output.NeedSnapshot: To has received, verified and kept a snapshot of Position, or not.
	SnapshotSent struct {
		To       consensus.MemberID
		Position consensus.Position
		OK       bool
	}

	// Unreachable says that the connection to Member broke: evidence that it died, not proof.
	Unreachable struct{ Member consensus.MemberID }

	// Transfer asks for leadership to move to To, or, with NoMember, to the voter best suited.
	Transfer struct{ To consensus.MemberID }

	// Spare names the members that leave leadership to others as cordoned ones do, for a reason that is not in the
	// configuration. It takes the place of the one before.
	Spare struct{ Members []consensus.MemberID }

	// Compact lets the log forget entries up to Index. Never beyond what is applied here, nor beyond what a snapshot
	// on its way to a follower needs afterwards.
	Compact struct{ Index consensus.Index }

	// Campaign asks for an election now, with pre-vote as usual.
	Campaign struct{}
)

func (Tick) input()              {}
func (Receive) input()           {}
func (Propose) input()           {}
func (Read) input()              {}
func (ChangeConfig) input()      {}
func (Persisted) input()         {}
func (Applied) input()           {}
func (SnapshotInstalled) input() {}
func (SnapshotSent) input()      {}
func (Unreachable) input()       {}
func (Transfer) input()          {}
func (Spare) input()             {}
func (Compact) input()           {}
func (Campaign) input()          {}
