package membership

import (
	"slices"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
)

// Spec is what an operator wants. All changes of voters that it asks for happen in one atomic step; learners join before,
// and catch up.
type Spec struct {
	Kind    Kind                 `json:"kind"`
	Add     []Newcomer           `json:"add,omitempty"`
	Remove  []consensus.MemberID `json:"remove,omitempty"`
	Promote []consensus.MemberID `json:"promote,omitempty"`
	Demote  []consensus.MemberID `json:"demote,omitempty"`
	Update  []consensus.Member   `json:"update,omitempty"` // ID and PeerURLs
	// Cordon names members that are to leave leadership to others from then on, Uncordon those that need not any more. It is
	// done before the voters change. The same member may be promoted, say, and cordoned.
	Cordon   []consensus.MemberID `json:"cordon,omitempty"`
	Uncordon []consensus.MemberID `json:"uncordon,omitempty"`
	// Drain names members that leadership is to leave; nothing else happens to them. It goes with no other change.
	Drain []consensus.MemberID `json:"drain,omitempty"`
	// Protocol of the step that changes voters; auto lets the leader choose.
	Protocol consensus.Protocol `json:"protocol,omitempty"`
	// Expected, if not zero, is the configuration that the plan was made for: another one in force refuses the job.
	Expected consensus.ConfigID `json:"expected,omitzero"`
	// JoinWithinMS is how long newcomers may take to start before the job gives up and takes them back; zero is an hour.
	JoinWithinMS int64 `json:"join_within_ms,omitempty"`
	// Force, a reason in an operator's words, gives away the place of a voter that is only silent, see Unproved, and changes
	// peer URLs though the member is not found there. The former ones are kept until it is.
	Force string `json:"force,omitempty"`
	// After are the unfinished jobs that the plan told of: the change waits for them, and what they make of the cluster is
	// expected too. No other change is.
	After []JobID `json:"after,omitempty"`
}

// Stale reports whether s was made for another configuration than id.
func (s *Spec) Stale(id consensus.ConfigID) bool {
	return s.Expected != consensus.ConfigID{} && s.Expected != id
}

// Due is the configuration that a change expects now if it was planned for Expected and waits, or waited, for the jobs of
// After: what they made of the one that it was planned for, or while they ran. now is in force.
func (s *Spec) Due(before []Job, now consensus.ConfigID) consensus.ConfigID {
	due := s.Expected
	for i := range before {
		j := &before[i]
		final := j.Final
		if !j.State.Ended() {
			final = now
		}
		if !slices.Contains(s.After, j.ID) {
			continue
		}
		if due != (consensus.ConfigID{}) && j.begun() && j.Config.Index <= due.Index && due.Index <= final.Index {
			due = final
		}
	}
	return due
}

// Kind is how people call a job.
type Kind string

// The kinds.
const (
	KindChange  Kind = "change"
	KindReplace Kind = "replace" // one member out, one in
	KindDrain   Kind = "drain"
)

// Newcomer is a member to be. It joins as a learner and, unless it is to stay one, votes as soon as it has caught up.
type Newcomer struct {
	ID       consensus.MemberID `json:"id"` // drawn when the job is accepted
	Name     string             `json:"name,omitempty"`
	PeerURLs []string           `json:"peer_urls"`
	Learner  bool               `json:"learner,omitempty"` // to stay one
	Cordoned bool               `json:"cordoned,omitempty"`
}

// View is what a leader knows of its cluster.
type View struct {
	Leader   consensus.MemberID
	Config   consensus.Config
	ID       consensus.ConfigID
	Protocol consensus.Protocol // by which Config came
	Settled  bool               // Config is not on its way to another one
	// Undecided is true while the entry of Config has not committed: then a joint-early change, too, can be aborted.
	Undecided bool
	// TermStarted is false until an entry of the leader's term has committed: no change is accepted before.
	TermStarted bool
	Last        consensus.Index // of the leader's log
	Members     []MemberView    // one for each member of Config, sorted by id
	Tombstones  []consensus.MemberID
	MaxLearners int
	Strict      bool
	Now         int64       // unix milliseconds
	Level       level.Level // the active feature level
	NeedsMemory int64       // the least --memory, in bytes, with which a process starts that holds the leases of the cluster
	// Advice is what Care found last, for people; empty if all is well.
	Advice string
	// Alarms are what the leader, and the member that is asked, say of members of other epochs, and of processes of
	// another history, that they met, for people.
	Alarms []string
	// Faults break rules. Tests only.
	Faults Faults `json:"-"`
}

// States of a member that is refused for its data directory. It counts as silent, and starting it again cures nothing.
const (
	LostItsDisk = "lost its disk"
	RolledBack  = "rolled back"
	// OtherHistory: a process of another cluster with the same id answers at its address.
	OtherHistory = "of another history"
)

// MarkedCorrupt is the state of a member whose store differs from the others'. It votes and acknowledges, and serves no
// client.
const MarkedCorrupt = "marked corrupt"

// MemberView is one member as the leader sees it.
type MemberView struct {
	ID         consensus.MemberID
	Name       string // as published, else as configured
	PeerURLs   []string
	ClientURLs []string
	Version    string
	Build      string      // version of its program, as published
	Level      level.Level // that it knows, as published; zero: nothing is
	Zone       string      // what fails together with it, as published; may be empty
	Started    bool        // has published itself once
	Active     bool        // heard within an election timeout; the leader itself always
	CaughtUp   bool        // near enough to the leader's log to vote
	Match      consensus.Index
	State      string        // probe, replicate, snapshot, or one of those above; empty for the leader
	SilentMS   int64         // since it was heard last; 0 if active
	Snapshot   *TransferView // a snapshot on its way to it, or nil
}

// TransferView is how far a snapshot is, in bytes.
type TransferView struct {
	Sent, Total    int64
	BytesPerSecond int64
}

// settled reports whether nothing is under way.
func (v *View) settled() bool { return v.Settled && !v.Config.IsJoint() }

// decided reports whether no leader can undo the change to the configuration in force any more: its entry has committed, and
// by joint that of C(new). By joint-early it is decided by C(old,new), without which no log has C(new).
func (v *View) decided() bool {
	if v.Protocol == consensus.ProtocolJointEarly && !v.Config.IsJoint() {
		return true
	}
	return !v.Undecided && !(v.Config.IsJoint() && v.Protocol == consensus.ProtocolJoint)
}

// active lists the members that were heard lately, the leader included.
func (v *View) active() []consensus.MemberID {
	return v.those(func(m *MemberView) bool { return m.Active })
}

// Fit lists the members that could take part in a commit now: they were heard lately and hold nearly all of the leader's
// log. The leader is one of them.
func (v *View) Fit() []consensus.MemberID {
	return v.those(func(m *MemberView) bool { return m.Active && (m.CaughtUp || v.Faults.CountLaggards) })
}

// Works reports whether a voter could take part in a commit now: no job takes its vote unasked.
func (v *View) Works(id consensus.MemberID) bool {
	return v.Config.IsVoter(id) && slices.Contains(v.Fit(), id)
}

func (v *View) those(which func(*MemberView) bool) []consensus.MemberID {
	var ids []consensus.MemberID
	for i := range v.Members {
		if m := &v.Members[i]; m.ID == v.Leader || which(m) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// NameOwner returns a member other than except that is called so. The empty name belongs to no member.
func (v *View) NameOwner(name string, except consensus.MemberID) (consensus.MemberID, bool) {
	for i := range v.Members {
		if m := &v.Members[i]; name != "" && m.Name == name && m.ID != except {
			return m.ID, true
		}
	}
	return consensus.NoMember, false
}

// Member returns the view of id.
func (v *View) Member(id consensus.MemberID) (MemberView, bool) {
	for i := range v.Members {
		if v.Members[i].ID == id {
			return v.Members[i], true
		}
	}
	return MemberView{}, false
}
