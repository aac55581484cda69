package consensus

import "fmt"

// Term is a Raft term: the number of an election. Terms only grow. Zero is before the first election.
type Term uint64

// Index is the position of an entry in the replicated log. The first entry has index 1; zero is "before the log".
type Index uint64

// MemberID names one member for ever. It is random, never zero and never reused after removal.
type MemberID uint64

// NoMember is the absent member, for example an unknown leader.
const NoMember MemberID = 0

// ClusterID names one cluster. Messages of another cluster are refused.
type ClusterID uint64

func (id MemberID) String() string  { return fmt.Sprintf("%x", uint64(id)) }
func (id ClusterID) String() string { return fmt.Sprintf("%x", uint64(id)) }

// ConfigID names a configuration by the entry that introduced it, and by its stage: an entry with both sets of
// voters is in force first as a joint configuration (stage 0) and then as the new one (stage 1). A counter or a hash
// would be met again after a roll-back, which loses writes (docs/simulation.md, row "reuse-config-ids").
type ConfigID struct {
	Index Index
	Term  Term
	Stage uint8
}

// lastStage is the last stage that this build knows.
const lastStage = 1

// FoundingID names the configuration that a cluster starts with: no entry introduced it. The zero ConfigID is no name: a
// member that knows no configuration yet says it, and a caller that expects none in particular.
func FoundingID() ConfigID { return ConfigID{Term: 1} }

func (id ConfigID) String() string { return fmt.Sprintf("%d.%d.%d", id.Index, id.Term, id.Stage) }

// SessionID names the exactly-once session under which a member or a native client proposes (client.go tells which).
// A session is opened and retired by log entries; a proposal of an unknown or retired session is refused.
type SessionID struct {
	Member MemberID // whose session it is; a client's random id stands in its place
	Number uint64   // grows: none is ever opened twice
}

// ProposalID names a proposal. It is stable across retries. The zero value marks entries that no client or member proposed.
type ProposalID struct {
	Session  SessionID
	Sequence uint64 // 1, 2, 3, ... within the session
}

// IsZero reports whether the entry was made by a leader itself (a no-op, a configuration it finishes).
func (id ProposalID) IsZero() bool { return id == ProposalID{} }

func (id ProposalID) String() string {
	return fmt.Sprintf("%x/%x/%d", uint64(id.Session.Member), id.Session.Number, id.Sequence)
}

// Position is that of an entry in the log: its index and term.
type Position struct {
	Index Index
	Term  Term
}

// Before reports whether a log that ends at m is behind one that ends at other (Raft paper, section 5.4.1).
func (m Position) Before(other Position) bool {
	return m.Term < other.Term || (m.Term == other.Term && m.Index < other.Index)
}

func (m Position) String() string { return fmt.Sprintf("%d.%d", m.Index, m.Term) }
