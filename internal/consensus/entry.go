package consensus

// EntryKind says who reads the payload of an entry.
type EntryKind uint8

const (
	// EntryCommand carries a kv command; the state machine reads it.
	EntryCommand EntryKind = 1
	// EntryNoop is the first entry of a term and carries nothing (Raft paper, section 8); or it settles a configuration
	// whose protocol has no entry of its own for that, and carries the encoded id of it.
	EntryNoop EntryKind = 2
	// EntryConfig carries an encoded ConfigChange; consensus and the state machine both read it.
	EntryConfig EntryKind = 3
	// EntryAbort carries nothing but the id of a proposal, which is never executed from there on: no member knew any more
	// whether it was to be. The state machine reads it.
	EntryAbort EntryKind = 4
)

func (k EntryKind) String() string {
	switch k {
	case EntryCommand:
		return "command"
	case EntryNoop:
		return "noop"
	case EntryConfig:
		return "config"
	case EntryAbort:
		return "abort"
	}
	return "unknown"
}

// Entry is one position of the replicated log.
type Entry struct {
	Index    Index
	Term     Term
	Kind     EntryKind
	Proposal ProposalID // zero for entries that a leader made itself
	Proposer MemberID   // the member that gets every voter's acknowledgement of it; or NoMember
	Answered MemberID   // the leader that answers it on the fast path, before it has committed; NoMember for slow entries
	// ExactRevision is the revision that the entry must be applied at, or zero for "the next one" (a slow entry).
	ExactRevision uint64
	Payload       []byte
}

// Position returns the position of e.
func (e *Entry) Position() Position { return Position{Index: e.Index, Term: e.Term} }

// Attempt returns which attempt of its proposal e is, with revision zero for a slow entry.
func (e *Entry) Attempt() Attempt { return AttemptOf(e.Proposal, e.ExactRevision, e.Payload) }

// SizeBytes is what e counts against flow-control limits, in bytes.
func (e *Entry) SizeBytes() int { return len(e.Payload) + entryOverheadBytes }

// entryOverheadBytes is the upper bound of the encoded fields beside the payload (codec.go draws them).
const entryOverheadBytes = 80

// Proposal is a command on its way into the log.
type Proposal struct {
	ID       ProposalID
	Proposer MemberID  // see Entry
	Kind     EntryKind // EntryCommand, or EntryConfig with an encoded ChangeRequest as payload
	Payload  []byte
}

// HardState is what a member must have on disk before it answers (Raft paper, figure 2).
type HardState struct {
	Term   Term
	Vote   MemberID
	Commit Index // a hint that saves work at start; safe to lose
	// Promise is for how long, in microseconds, this member may have promised a leader to help elect no other, or zero. A
	// restart under other settings keeps it.
	Promise uint64
}

// Founding returns what the data of a member begins with: the configuration that its cluster starts with, or none if the
// member joins, and will learn it.
func Founding(config Config) SnapshotMeta {
	if len(config.Voters) == 0 {
		return SnapshotMeta{}
	}
	return SnapshotMeta{Config: config, ConfigID: FoundingID()}
}

// SnapshotMeta describes the state that a snapshot stands for. The data itself never passes through the core.
type SnapshotMeta struct {
	Position Position
	// Config is that of the last configuration entry at or below Position, as the entry holds it; ConfigID is its id.
	Config   Config
	ConfigID ConfigID
	Protocol Protocol // of that entry; zero for the first configuration of a cluster
	// Open is true until the change is settled: no member learns of its removal yet. Tombs are those who will.
	Open  bool
	Tombs []MemberID
}

// Fitting returns how many proposals, from the first on, go into one message of about maxBytes, at least one.
func Fitting(proposals []Proposal, maxBytes int) int {
	n, size := 1, len(proposals[0].Payload)
	for n < len(proposals) && size+len(proposals[n].Payload) <= maxBytes {
		size += len(proposals[n].Payload)
		n++
	}
	return n
}
