package consensus

import "slices"

// Protocol names the rule by which a configuration change takes effect. It is carried by the change itself.
type Protocol uint8

const (
	// ProtocolSingle changes one voter; in force at append, undone by truncation (Raft thesis, section 4.1).
	ProtocolSingle Protocol = 1
	// The remaining numbers belong to joint, joint-early, activate and apply.
)

// Member is what the log says of one member. Client URLs and the published name live in the replicated state.
type Member struct {
	ID       MemberID
	Name     string   // as in the initial cluster; may be empty until the member publishes itself
	PeerURLs []string // sorted
	// Promote marks a learner that was added to be a voter: the leader promotes it as soon as it has caught up. Until
	// then it counts nowhere, so that a member that never starts, or was mistyped, endangers no quorum.
	Promote bool
}

// Config is one configuration of the cluster: who votes, who learns, and where they are.
// Sets are sorted slices without duplicates, never maps: the core must not depend on map order.
type Config struct {
	Voters       []MemberID // incoming voters
	Outgoing     []MemberID // outgoing voters; empty unless joint
	Learners     []MemberID
	LearnersNext []MemberID // voters that become learners when the joint phase ends
	Members      []Member   // attributes of all of them, sorted by ID
}

// IsJoint reports whether both sets of voters must agree.
func (c *Config) IsJoint() bool { return len(c.Outgoing) > 0 }

// IsVoter reports whether id votes in either set.
func (c *Config) IsVoter(id MemberID) bool {
	return slices.Contains(c.Voters, id) || slices.Contains(c.Outgoing, id)
}

// IsLearner reports whether id receives the log without counting.
func (c *Config) IsLearner(id MemberID) bool { return slices.Contains(c.Learners, id) }

// Contains reports whether id is part of the configuration in any role.
func (c *Config) Contains(id MemberID) bool {
	_, ok := c.Member(id)
	return ok
}

// Member returns the attributes of id.
func (c *Config) Member(id MemberID) (Member, bool) {
	at, ok := slices.BinarySearchFunc(c.Members, id, func(m Member, id MemberID) int {
		switch {
		case m.ID < id:
			return -1
		case m.ID > id:
			return 1
		}
		return 0
	})
	if !ok {
		return Member{}, false
	}
	return c.Members[at], true
}

// IDs returns every member, sorted.
func (c *Config) IDs() []MemberID {
	ids := make([]MemberID, len(c.Members))
	for i := range c.Members {
		ids[i] = c.Members[i].ID
	}
	return ids
}

// Clone returns a deep copy.
func (c *Config) Clone() Config {
	out := Config{
		Voters:       slices.Clone(c.Voters),
		Outgoing:     slices.Clone(c.Outgoing),
		Learners:     slices.Clone(c.Learners),
		LearnersNext: slices.Clone(c.LearnersNext),
		Members:      slices.Clone(c.Members),
	}
	for i := range out.Members {
		out.Members[i].PeerURLs = slices.Clone(out.Members[i].PeerURLs)
	}
	return out
}

// ConfigChange is the payload of an EntryConfig: the whole resulting configuration and the id of the one it replaces.
// It is a compare-and-swap: the leader refuses it if Replaces is not the configuration in force.
type ConfigChange struct {
	Protocol Protocol
	Replaces ConfigID
	Config   Config
	Tombs    []MemberID // members that this change removes for ever
}

// ChangeKind says what a ChangeRequest asks for.
type ChangeKind uint8

const (
	ChangeAddVoter   ChangeKind = 1
	ChangeAddLearner ChangeKind = 2
	ChangePromote    ChangeKind = 3 // learner -> voter
	ChangeRemove     ChangeKind = 4
	ChangeUpdate     ChangeKind = 5 // peer URLs of a member
)

// ChangeRequest asks the leader for a configuration change; the leader turns it into a ConfigChange or refuses it.
type ChangeRequest struct {
	Kind     ChangeKind
	Member   Member   // ID always; Name and PeerURLs where the kind needs them
	Expected ConfigID // refuse unless this is in force; zero = whichever is in force
}
