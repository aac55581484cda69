package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Observed is everything that a decision depends on.
type Observed struct {
	Want   Want
	Kept   Kept
	Claims []Claim
	Pods   []Pod
	// Cluster is what a leader told; nil: none was reached.
	Cluster *Cluster
	// Former are pods of another cluster that had the name before, or whose objects were restored: they may be members that
	// live.
	Former []string
	// Taken are names of objects that have the cluster's labels and are none of it: no member gets one of them.
	Taken []string
	// Answers are what single members told of themselves while there is no leader.
	Answers []Answer
	// Trouble is why members that run tell nothing, and what helps; empty: nobody knows.
	Trouble string
}

// Want is how the cluster shall be.
type Want struct {
	Namespace    string
	Prefix       string // of the names of members: no other cluster has it, also no former one of the same name
	Members      int
	Zones        []string
	Template     string // of a member's pod: a hash of what a restart would change
	Bytes        int64  // of a claim
	ReplaceAfter time.Duration
	Restore      bool     // the founder begins with a past state
	Consent      *Consent // nil: none was given
	Uncompared   bool     // the consent is to what claims of other survivors hold alone, too
	KeepClaims   bool
	Refused      string // the spec's image, and why no member gets it; empty: they do
	Paused       bool   // no member is made, stopped, added or removed
}

// Consent is the word of the spec that a loss is accepted.
type Consent struct {
	Revision int64  // what was written after it may be lost
	Loss     string // the id of the loss
}

func (w *Want) name(serial int64) string { return fmt.Sprintf("%s%d", w.Prefix, serial) }

// Kept is what the operator remembers in the status.
type Kept struct {
	Founded  bool
	Founders []string
	Serial   int64
	Recovery *Recovery
	Dropped  []string
	// VoidConsent is a consent that counts no more: it was used, a leader answered while the spec had it, or it was there
	// before a loss was reported. Nil: there is none, or the spec has none any more.
	VoidConsent *Consent
	Reported    *Consent // to the loss that the status has reported since a leader answered last; nil: none
}

// Recovery is that of a survivor after the loss of a majority.
type Recovery struct {
	Survivor string
	Lost     []LostVoter // as they were when the loss was accepted
	Leaves   []string    // are removed for ever
	Compare  []string    // other survivors, whose claims the command reads
	Accepted Consent
	Term     uint64 // of the last entry of the survivor's log; 0: not known
	Index    int64  // of that entry
	Stopping bool   // the loss was looked at once more, and members are being stopped
	Done     bool
	Failed   string
}

// LostVoter is a voter that was gone when a recovery began.
type LostVoter struct {
	Member   string
	Life     string // a hash of its pod's Life; empty: it had no pod
	Homeless bool   // no node had taken its pod
}

// Claim is a claim to storage, and the identity of a member: it has the member's name.
type Claim struct {
	Member  string
	Serial  int64
	Zone    string
	Bytes   int64 // that were asked for
	Used    bool  // a pod was made for it
	Leaving bool  // it was deleted, and goes once no pod uses it
	Empty   bool  // it has no volume yet, so that no process had it
	Cordon  bool  // the operator cordons the member, since its node is drained
	Refused bool  // it does not grow
	Epoch   Epoch // in which a leader named the member last; without a name: none has yet
	// Leaves are the members that a command of a recovery leaves out which may have run on the claim, since its pod was made,
	// and of whose end the member's process has not told yet. Nil: there is no such command.
	Leaves  []string
	Removed bool // from the cluster, by a job: no process starts there again
	// LeftOut says that such a command may have begun an epoch there, and a leader of the former one answered first: no process
	// starts there again.
	LeftOut bool
	// LeftOutTerm is the term of that leader; 0: not known.
	LeftOutTerm uint64
}

// Pod is a pod of a member.
type Pod struct {
	Member    string
	Template  string
	Founding  bool   // it may found a cluster
	Recovers  bool   // it is no member, but the command that recovers one
	Compares  bool   // that command reads claims of other survivors, too
	Name      string // of the pod
	Running   bool
	Ready     bool
	Started   bool   // a container of it runs, or has run
	Waits     string // why it does not serve, as Kubernetes tells, and what helps
	Leaving   bool   // it was deleted
	Ended     bool   // its containers ended and start no more
	Succeeded bool   // they ended well
	Said      string
	NodeLost  bool // its node is not ready, or gone
	Homeless  bool // no node takes it
	Draining  bool // its node is cordoned
	// Stuck is for how long the operator has seen it as NodeLost or Homeless say.
	Stuck time.Duration
	// Life differs from what it was if its process may have run meanwhile.
	Life string
}

// Cluster is what the cluster tells of itself.
type Cluster struct {
	Term    uint64 // of the leader; 0: not known
	By      string // the member that told it
	Leader  uint64 // the ID of the member that leads
	Epoch   Epoch
	Members []Member // in the order in which an upgrade restarts them
	Jobs    []Job    // that have not ended
	Joint   bool
	// Unsettled says that the last change of members may be taken back, or not enough members know it: those that it removed
	// are needed.
	Unsettled bool
	// Blockers are reasons not to restart a member that works, as `quorate upgrade plan` and the doctor tell them.
	Blockers []string
	// Others are the words of other members about the cluster, in the same look: see Told.
	Others []Told
}

// Told is another word about the cluster, in the same look: that of a leader as a member passed it on. It counts if no claim
// tells that a recovery left its epoch behind.
type Told struct {
	Member  string // that passed it on, and is in Members
	Epoch   Epoch
	Leader  uint64
	Members []Member // with ID, Name and Voter
}

// Member is one of the configuration.
type Member struct {
	ID       uint64
	Name     string
	Voter    bool
	Joining  bool // becomes a voter once it has caught up
	Started  bool
	Active   bool
	CaughtUp bool
	Leader   bool
	Cordoned bool
	Silent   time.Duration // since the leader heard it
	DiskLost bool          // the cluster refuses it for its data: they are lost, older, or differ
}

// works tells whether the member counts for a quorum now.
func (m *Member) works() bool { return m.Voter && m.Active && (m.CaughtUp || m.Leader) }

// Job is a change of members that the cluster makes.
type Job struct {
	ID        uint64
	Cancelled bool          // it was asked to stop
	Quiet     time.Duration // for how long the operator has seen it not move
	Removes   []uint64
	Adds      []string
	What      string // for people
}

// Answer is what a member tells of itself.
type Answer struct {
	Member   string
	Epoch    uint64 // of its log; 0: not known
	Term     uint64 // of the log's last entry; 0: not known
	Index    int64  // of that entry
	Revision int64
	Voters   []string // of the configuration that it knows
	Members  []string // the voters and the learners
	Hearsay  bool     // Voters and Members are not its own words, but those of the leader that answered last
}

// Quorum of so many voters.
func Quorum(voters int) int { return voters/2 + 1 }

func (o *Observed) claim(member string) *Claim {
	if i := slices.IndexFunc(o.Claims, func(c Claim) bool { return c.Member == member }); i >= 0 {
		return &o.Claims[i]
	}
	return nil
}

func (o *Observed) pod(member string) *Pod {
	i := slices.IndexFunc(o.Pods, func(p Pod) bool { return p.Member == member && !p.Recovers })
	if i >= 0 {
		return &o.Pods[i]
	}
	return nil
}

// members are those that have a claim which a process had.
func (o *Observed) members() (names []string) {
	for i := range o.Claims {
		if o.Claims[i].Used {
			names = append(names, o.Claims[i].Member)
		}
	}
	return names
}

func (c *Cluster) member(name string) *Member {
	if i := slices.IndexFunc(c.Members, func(m Member) bool { return m.Name == name }); i >= 0 {
		return &c.Members[i]
	}
	return nil
}

// named tells whether the member is in the configuration, or a job adds it.
func (c *Cluster) named(name string) bool {
	return c.member(name) != nil || slices.ContainsFunc(c.Jobs, func(j Job) bool { return slices.Contains(j.Adds, name) })
}

// voters returns how many vote, and how many of them work.
func (c *Cluster) voters() (all, work int) {
	for i := range c.Members {
		if m := &c.Members[i]; m.Voter {
			all++
			if m.works() {
				work++
			}
		}
	}
	return all, work
}

// MayTake tells whether the process of a member may be stopped: a quorum of the voters works without it. Of one or two
// voters each may, if all others work: their restart stops writes for a moment, whatever the order.
func (c *Cluster) MayTake(m *Member) bool {
	all, work := c.voters()
	if !m.Voter {
		return !c.Joint
	}
	others := work
	if m.works() {
		others--
	}
	if all <= 2 {
		return others == all-1
	}
	return others >= Quorum(all) && !c.Joint
}

func zoneAt(zones []string, i int) string {
	if len(zones) == 0 {
		return ""
	}
	return zones[i%len(zones)]
}

// emptiestZone is the wanted zone with the fewest members, leaving one of them out of the count.
func (o *Observed) emptiestZone(but string) string {
	best, least := "", -1
	for _, zone := range o.Want.Zones {
		count := 0
		for i := range o.Claims {
			if c := &o.Claims[i]; c.Zone == zone && c.Member != but && !c.Leaving && o.Cluster.named(c.Member) {
				count++
			}
		}
		if least < 0 || count < least {
			best, least = zone, count
		}
	}
	return best
}

// Newest is the last epoch in which a leader named one of the claims.
func Newest(claims []Claim) Epoch {
	newest := Epoch{}
	for i := range claims {
		e := claims[i].Epoch
		if cmp.Or(cmp.Compare(e.Number, newest.Number), cmp.Compare(e.Name, newest.Name)) > 0 {
			newest = e
		}
	}
	return newest
}

// leftOut tells whether a recovery left the member of a claim out. The status may have forgotten it, or there was nobody to
// remember it: a recovery by hand is none of the operator's.
func (o *Observed) leftOut(c *Claim) bool {
	dropped := slices.Contains(o.Kept.Dropped, c.Member) && !(o.Cluster != nil && o.Cluster.named(c.Member))
	return c.LeftOut || dropped || c.Epoch.Name != "" && c.Epoch.Former(Newest(o.Claims))
}

// Untold are the members whose claims stay because no leader has told its epoch while it named them, as those of 1.0 do not:
// they are none any more, and nothing tells whether a job has removed them or a recovery has left them out.
func (o *Observed) Untold() (names []string) {
	for i := range o.Claims {
		c := &o.Claims[i]
		if o.Cluster != nil && c.Used && !c.Leaving && c.Epoch.Name == "" && !o.leftOut(c) && !o.Cluster.named(c.Member) {
			names = append(names, c.Member)
		}
	}
	return names
}

// dropped tells whether a recovery left the member of a pod out, whose claim was deleted and may have what the survivor lacks.
// The epoch of the leader may be on no claim yet.
func (o *Observed) dropped(p *Pod) bool {
	c := o.claim(p.Member)
	return c != nil && c.Leaving && !p.Recovers &&
		(o.leftOut(c) || c.Epoch.Name != "" && c.Epoch.Former(o.Cluster.Epoch))
}
