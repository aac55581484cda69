package consensus

import (
	"cmp"
	"fmt"
	"slices"
)

// Protocol names the rule by which a configuration change takes effect. It is carried by the change itself, so that all
// members follow the same rule for it whatever their flags.
type Protocol uint8

const (
	// ProtocolAuto lets the leader choose: ProtocolSingle where one voter differs, ProtocolJointEarly elsewhere. It is
	// never in the log.
	ProtocolAuto Protocol = 0
	// ProtocolSingle changes one voter; in force at append, undone by truncation (Raft thesis, section 4.1).
	ProtocolSingle Protocol = 1
	// ProtocolJoint goes through a configuration in which both sets decide, left by a second entry; each is in force at
	// append. The change is done when the second has committed (Raft thesis, section 4.3).
	ProtocolJoint Protocol = 2
	// ProtocolJointEarly is ProtocolJoint whose change is decided, and reported, once the joint entry has committed; the
	// second entry follows in the background.
	ProtocolJointEarly Protocol = 3
	// ProtocolActivate puts both sets into one entry: joint at append, and the new set alone for every member that knows
	// the entry to be committed (Shraer et al., "Dynamic Reconfiguration of Primary/Backup Clusters", 2012).
	ProtocolActivate Protocol = 4
	// ProtocolApply takes effect when the entry is applied, and not before (etcd-raft's ConfChangeV2 with automatic
	// leave).
	ProtocolApply Protocol = 5

	lastProtocol = ProtocolApply
)

// protocolNames are the names as users write them, by number.
var protocolNames = [...]string{"auto", "single", "joint", "joint-early", "activate", "apply"}

func (p Protocol) String() string {
	if int(p) < len(protocolNames) {
		return protocolNames[p]
	}
	return "unknown"
}

// Known reports whether this version can follow p.
func (p Protocol) Known() bool { return p > ProtocolAuto && int(p) < len(protocolNames) }

// ParseProtocol returns the protocol called name; false if there is none. The empty name is ProtocolAuto.
func ParseProtocol(name string) (Protocol, bool) {
	if name == "" {
		return ProtocolAuto, true
	}
	at := slices.Index(protocolNames[:], name)
	return Protocol(max(at, 0)), at >= 0
}

// ProtocolNames lists what ParseProtocol knows, "auto" first.
func ProtocolNames() []string { return slices.Clone(protocolNames[:]) }

// ExperimentSwitched names a protocol that is played in the laboratory alone (ADR 0063): it has no number, so that no log can
// hold it.
const ExperimentSwitched = "activate-switched"

// RefuseExperiment returns an error for the name of a protocol that no cluster runs, which says where it can be played.
func RefuseExperiment(name string) error {
	if name != ExperimentSwitched {
		return nil
	}
	return fmt.Errorf("protocol %q is an experiment that no cluster runs: play it with `quoratesim reconfig --protocol %s`",
		name, name)
}

// Member is what the log says of one member. Client URLs and the published name live in the replicated state.
type Member struct {
	ID       MemberID
	Name     string   // as in the initial cluster; may be empty until the member publishes itself
	PeerURLs []string // sorted
	// Promote marks a learner that was added to be a voter: the leader promotes it as soon as it has caught up. Until
	// then it counts nowhere, so that a member that never starts, or was mistyped, endangers no quorum.
	Promote bool
	// Joining marks a learner that a membership job added, and promotes together with the other changes that it makes.
	// Neither mark outlives the promotion, and no marked learner counts against the limit of learners.
	Joining bool
	// FormerURLs are the peer URLs before an update that is not confirmed: the member was not found at the new ones yet.
	// Members dial the former ones, too; the leader drops them once the member has answered at PeerURLs.
	FormerURLs []string
	// Storage is the data directory that speaks for the member: it is bound to it, once and for ever. NoStorage: not yet.
	Storage StorageID
	// Cordoned marks a member that leaves leadership to others: see Config.Cordoned. The mark stays with the member, whatever
	// its role, until an operator takes it away.
	Cordoned bool
}

// DialURLs are all URLs at which the member may be, the current ones first.
func (m *Member) DialURLs() []string {
	return slices.Concat(m.PeerURLs, m.FormerURLs)
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

// Including returns c with the attributes of others beside its own members, which stay as they are. The others have no role.
func (c *Config) Including(others []Member) Config {
	out := *c
	for i := range others {
		at, found := slices.BinarySearchFunc(out.Members, others[i].ID, func(m Member, id MemberID) int {
			return cmp.Compare(m.ID, id)
		})
		if !found {
			out.Members = slices.Insert(slices.Clone(out.Members), at, others[i])
		}
	}
	return out
}

// Binding is what a configuration says of a storage id that is used in a member's name.
type Binding uint8

const (
	// BindingNonMember says that the configuration does not contain the member. No member counts what non-members say.
	BindingNonMember Binding = 0
	// BindingOpen says that no member is bound: the cluster is just being founded by a majority, or was made by restore.
	BindingOpen Binding = 1
	// BindingNone says that others are bound, and the member not yet: what it says must not be counted.
	BindingNone Binding = 2
	// BindingOwn says that the member is bound to this storage id.
	BindingOwn Binding = 3
	// BindingOther says that the member is bound to another one: this one has lost what the member promised.
	BindingOther Binding = 4
)

// BindingOf says how id and storage belong together by c.
func (c *Config) BindingOf(id MemberID, storage StorageID) Binding {
	m, known := c.Member(id)
	switch {
	case !known:
		return BindingNonMember
	case m.Storage.IsZero() && !c.Binds():
		return BindingOpen
	case m.Storage.IsZero():
		return BindingNone
	case m.Storage == storage:
		return BindingOwn
	}
	return BindingOther
}

// Binds reports whether c binds any member.
func (c *Config) Binds() bool {
	return slices.ContainsFunc(c.Members, func(m Member) bool { return !m.Storage.IsZero() })
}

// Cordoned reports whether id is a member that leaves leadership to others: it bears the mark, and another voter does not.
// Where every voter bears it, the mark means nothing, for one of them must lead. While joint, the incoming voters count.
func (c *Config) Cordoned(id MemberID) bool {
	if m, ok := c.Member(id); !ok || !m.Cordoned {
		return false
	}
	return slices.ContainsFunc(c.Voters, func(voter MemberID) bool {
		m, _ := c.Member(voter)
		return !m.Cordoned
	})
}

// LeavesLeadership reports whether a member is to leave leadership to others: it is spared, or cordoned. Where every voter that
// is not cordoned is spared, being cordoned means nothing: what is spared has a wrong state, and must not lead for that.
func (c *Config) LeavesLeadership(spared []MemberID, id MemberID) bool {
	if slices.Contains(spared, id) {
		return true
	}
	return c.Cordoned(id) && slices.ContainsFunc(c.Voters, func(voter MemberID) bool {
		return !c.Cordoned(voter) && !slices.Contains(spared, voter)
	})
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
		out.Members[i].FormerURLs = slices.Clone(out.Members[i].FormerURLs)
	}
	return out
}

// Settle returns what c becomes when its joint phase ends: the incoming voters alone, those to be demoted as learners, and no
// member that is in neither set. A configuration that is not joint is its own result, but for members without a role.
func (c *Config) Settle() Config {
	out := c.Clone()
	out.Outgoing, out.LearnersNext = nil, nil
	for _, id := range c.LearnersNext {
		if at, found := slices.BinarySearch(out.Learners, id); !found {
			out.Learners = slices.Insert(out.Learners, at, id)
		}
	}
	out.Members = slices.DeleteFunc(out.Members, func(m Member) bool {
		return !slices.Contains(out.Voters, m.ID) && !slices.Contains(out.Learners, m.ID)
	})
	return out
}

// Retiring returns the members that Settle drops, sorted: they are removed for ever once the change is settled.
func (c *Config) Retiring() []MemberID {
	var ids []MemberID
	for i := range c.Members {
		id := c.Members[i].ID
		if !slices.Contains(c.Voters, id) && !slices.Contains(c.Learners, id) && !slices.Contains(c.LearnersNext, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// ConfigChange is the payload of an EntryConfig: the whole resulting configuration and the id of the one it replaces.
// It is a compare-and-swap: the leader refuses it if Replaces is not the configuration in force.
type ConfigChange struct {
	Protocol Protocol
	Abort    bool // goes back from a joint configuration, which need not be committed, to the outgoing voters
	Replaces ConfigID
	Config   Config
	Tombs    []MemberID // members that this change removes for ever, once it is settled
}

// ChangeKind says what a ChangeStep asks for.
type ChangeKind uint8

const (
	ChangeAddVoter   ChangeKind = 1
	ChangeAddLearner ChangeKind = 2
	ChangePromote    ChangeKind = 3 // learner -> voter
	ChangeRemove     ChangeKind = 4
	ChangeUpdate     ChangeKind = 5 // peer URLs of a member
	ChangeDemote     ChangeKind = 6 // voter -> learner
	ChangeBind       ChangeKind = 7 // binds a member that is not bound to Member.Storage
	ChangeCordon     ChangeKind = 8 // sets Member.Cordoned
	ChangeUncordon   ChangeKind = 9 // takes it away
)

func (k ChangeKind) String() string {
	names := [...]string{"unknown", "add-voter", "add-learner", "promote", "remove", "update", "demote", "bind", "cordon",
		"uncordon"}
	if int(k) < len(names) {
		return names[k]
	}
	return names[0]
}

// ChangeStep is what happens to one member.
type ChangeStep struct {
	Kind   ChangeKind
	Member Member // ID always; Name, PeerURLs and Storage where the kind needs them
}

// ChangeRequest asks the leader for one atomic configuration change; the leader turns it into a ConfigChange or refuses
// it. No member may occur in two steps.
type ChangeRequest struct {
	Steps    []ChangeStep
	Protocol Protocol
	Expected ConfigID // refuse unless this is in force; zero = whichever is in force
	// Abort asks to go back from the joint configuration in force; there are no steps then.
	Abort bool
}

// ChangeOne asks for one step under ProtocolAuto, whichever configuration is in force.
func ChangeOne(kind ChangeKind, m Member) ChangeRequest {
	return ChangeRequest{Steps: []ChangeStep{{Kind: kind, Member: m}}}
}
