package identity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/consensus"
)

// Stage is how far a process is that has no data yet.
type Stage uint8

// The stages of a founding, each on disk before it is said.
const (
	Fresh    Stage = 1 // it has a storage id and nothing else
	Recorded Stage = 2 // it has the storage ids of all
	Founded  Stage = 3 // it is a member, or was one
)

// Greeting is what the members of a new cluster tell each other. A member that runs answers it, too.
type Greeting struct {
	Claim Claim
	Stage Stage
	// Bindings are the storage ids of all members, from Recorded on; of one that runs, the Line of the one who asks.
	Bindings []Bound
	// Elsewhere is where the member whose id the asker shows is connected from, with another data directory than the asker's.
	// Only a member that runs says so; empty: it is not known to be connected.
	Elsewhere string `json:",omitempty"`
}

// Bound is a line of a list of bindings.
type Bound struct {
	Member  consensus.MemberID
	Storage consensus.StorageID
}

// Founder is one process of a cluster that is to be founded. The members are those of --initial-cluster.
type Founder struct {
	Own      Claim
	Members  []consensus.Member // sorted by id
	Bindings []Bound            // as recorded here; nil: not yet
	Majority bool               // --founding=majority: begin at once, and bind who comes
	Excluded bool               // as recorded here: a member that runs has said that it is Lost or Retired
	Rules    Rules
}

// Verdict is what a founder does next.
type Verdict uint8

// The verdicts.
const (
	Wait    Verdict = 0 // for those that Decision names
	Record  Verdict = 1 // the bindings, on disk, and ask again
	Begin   Verdict = 2 // make the data, with the bindings as bindings, if there is one
	Lost    Verdict = 3 // this member existed before: its disk is lost. That it is Excluded, on disk
	Retired Verdict = 4 // the cluster runs without this member. That it is Excluded, on disk
	Broken  Verdict = 5 // a member's disk was lost while the cluster was being founded
)

// Decision is a verdict and what belongs to it.
type Decision struct {
	Verdict  Verdict
	Bindings []Bound
	Missing  []consensus.MemberID // Wait: the members that did not answer, or are not as far
	Text     string               // Lost, Retired, Broken: what is wrong, and what to do
}

// Greeting is what this founder tells others.
func (f *Founder) Greeting() Greeting {
	g := Greeting{Claim: f.Own, Stage: Fresh}
	if f.Bindings != nil {
		g.Stage, g.Bindings = Recorded, f.Bindings
	}
	return g
}

// Hears reports whether an answer from the address of a member of --initial-cluster counts: that of the member, and that of any
// member of this cluster that runs. One that was reset has another id, and is at the URL of the unchanged flags. At an address
// that is no member's of --initial-cluster (NoMember), as one of --join, only members that run count.
func (f *Founder) Hears(at consensus.MemberID, g *Greeting) bool {
	return g.Claim.Cluster == f.Own.Cluster && (g.Stage == Founded || at != consensus.NoMember && g.Claim.Member == at)
}

// Decide says what to do after the others were asked; a member that did not answer, or is of another cluster, is not in met.
func (f *Founder) Decide(met []Greeting) Decision {
	for i := range met {
		if g := &met[i]; g.Stage == Founded {
			return f.meetFounded(g, met)
		}
	}
	if f.Excluded && !f.Rules.ForgetExclusion {
		return f.excluded(met)
	}
	if f.Majority || f.Rules.FoundByMajority && 2*(len(met)+1) > len(f.Members) {
		return Decision{Verdict: Begin}
	}
	now := []Bound{{f.Own.Member, f.Own.Storage}}
	var missing []consensus.MemberID
	for i := range f.Members {
		id := f.Members[i].ID
		if id == f.Own.Member {
			continue
		}
		at := slices.IndexFunc(met, func(g Greeting) bool { return g.Claim.Member == id })
		if at < 0 {
			missing = append(missing, id)
			continue
		}
		now = append(now, Bound{id, met[at].Claim.Storage})
	}
	slices.SortFunc(now, func(a, b Bound) int { return compareIDs(a.Member, b.Member) })
	if lost := f.broken(met); lost != "" {
		return Decision{Verdict: Broken, Text: lost + f.breakOff(missing)}
	}
	switch {
	case len(missing) > 0:
		return Decision{Verdict: Wait, Missing: missing}
	case f.Bindings == nil:
		return Decision{Verdict: Record, Bindings: now}
	}
	for i := range met {
		if met[i].Stage != Recorded {
			missing = append(missing, met[i].Claim.Member)
		}
	}
	if len(missing) > 0 {
		return Decision{Verdict: Wait, Missing: missing}
	}
	return Decision{Verdict: Begin, Bindings: f.Bindings}
}

// excluded is the verdict of one that knows that the cluster has begun without its disk, while no running member answers. It
// must not found it again, not even with all others: they may have lost their disks, too, one after the other, each after its
// place was given to another member.
func (f *Founder) excluded(met []Greeting) Decision {
	return Decision{Verdict: Lost, Text: fmt.Sprintf("is no member of cluster %v, and founds nothing: the cluster ran already "+
		"when this process asked, without this data directory (%v), and now none of --initial-cluster and --join answers as "+
		"a member that runs, of %d that answer. Start those that have data, and this process asks them again", f.Own.Cluster,
		f.Own.Storage, len(met))}
}

// broken finds recorded bindings, here or elsewhere, that do not fit who is there now. A member that is there now may have
// begun, and have lost its disk since: no member here can know whether something was written, and bindings are recorded once.
func (f *Founder) broken(met []Greeting) string {
	all := append([]Greeting{f.Greeting()}, met...)
	for i := range all {
		for j := range all {
			storage, listed := lookUp(all[i].Bindings, all[j].Claim.Member)
			if !listed || storage == all[j].Claim.Storage {
				continue
			}
			return fmt.Sprintf("waits: the disk of %s was lost or exchanged while the cluster was being founded",
				f.name(all[j].Claim.Member))
		}
	}
	return ""
}

// breakOff says how to end a founding that broke. A member that does not answer may have begun, together with the disk that
// was lost, and hold what they acknowledged: no directory may be emptied before that member has been asked. Nor does it say
// that nothing was written if all answer: a majority may have begun, acknowledged writes, and come back without its disks.
func (f *Founder) breakOff(missing []consensus.MemberID) string {
	if len(missing) > 0 {
		return ". Start " + f.Waiting(missing) + " first, and empty no data directory before: the cluster may have begun there"
	}
	var all []consensus.MemberID
	for i := range f.Members {
		all = append(all, f.Members[i].ID)
	}
	return ". The cluster may have begun on it, and hold what was acknowledged. Look first on the machine of each (" +
		f.Waiting(all) + ") for a disk that is not mounted, a wrong --data-dir, or a directory that was moved: if there is " +
		"one with data, give it back, start its process again, and the others hear of it. Only if there is none anywhere, " +
		"so that what was written is lost for ever or nothing ever was: stop all, move their data directories aside, keep " +
		"these, and start all again"
}

// meetFounded is what follows from the answer of a member that runs, or ran. The answers of others may only say where this
// member's data are.
func (f *Founder) meetFounded(g *Greeting, met []Greeting) Decision {
	storage, listed := lookUp(g.Bindings, f.Own.Member)
	own, self := f.name(f.Own.Member), f.Own.Storage
	switch {
	case !listed:
		return Decision{Verdict: Retired, Text: fmt.Sprintf("is no member of cluster %v any more, says %s: stop it, or "+
			"give its place to it with `quorate member add %s --peer-urls %s` from any member that serves, and it goes "+
			"on by itself", f.Own.Cluster, f.name(g.Claim.Member), typed.Word(own), typed.Word(f.Own.Address))}
	case storage.IsZero():
		return Decision{Verdict: Begin} // a founding by majority: bound at the first contact with a leader
	case storage != self:
		return Decision{Verdict: Lost, Text: f.lostWords(g, met)}
	case f.Bindings == nil:
		return Decision{Verdict: Broken, Text: "has lost the record of its founding: empty its data directory"}
	}
	return Decision{Verdict: Begin, Bindings: f.Bindings}
}

// lostWords say what is wrong with a process whose member is bound to another data directory. Where that member runs nothing
// is lost, and it must not be reset.
func (f *Founder) lostWords(g *Greeting, met []Greeting) string {
	own, self := f.name(f.Own.Member), f.Own.Storage
	for i := range met {
		if by := &met[i]; by.Stage == Founded && by.Elsewhere != "" {
			return fmt.Sprintf("is not %s: %s runs with its data at %s, says %s, and this process has a new directory (%v). "+
				"It does not vote, and nothing is lost. Stop this process, and disable its unit on this host", own, own,
				by.Elsewhere, f.name(by.Claim.Member), self)
		}
	}
	return fmt.Sprintf("has lost its disk: cluster %v runs already, and %s says that %s is bound to another data directory; "+
		"this one is new (%v). It does not vote. %s", f.Own.Cluster, f.name(g.Claim.Member), own, self, ResetAdvice(own))
}

// ResetAdvice says what to do about the lost disk of a member whose process waits at its peer URLs with an empty directory.
func ResetAdvice(name string) string {
	return fmt.Sprintf("If %s was moved and has its data elsewhere, stop this process, and start %s there. Else look for its "+
		"directory: a disk that is not mounted, a wrong --data-dir. Give it back and start it again; if it is lost for ever, "+
		"`quorate member reset %s` from any member that serves, and this process goes on by itself; if none serves, "+
		"`quorate status` says what to do", name, name, typed.Word(name))
}

func (f *Founder) name(id consensus.MemberID) string {
	for i := range f.Members {
		if f.Members[i].ID == id {
			return nameOr(&f.Members[i])
		}
	}
	return id.String()
}

// Waiting names members and where they are expected.
func (f *Founder) Waiting(ids []consensus.MemberID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = f.name(id)
		for j := range f.Members {
			if f.Members[j].ID == id {
				words[i] += " at " + strings.Join(f.Members[j].PeerURLs, ",")
			}
		}
	}
	return strings.Join(words, ", ")
}

// Config returns the first configuration: all members vote, each bound as the bindings says.
func (f *Founder) Config(bindings []Bound) consensus.Config {
	var c consensus.Config
	for _, m := range f.Members {
		m.Storage, _ = lookUp(bindings, m.ID)
		c.Voters, c.Members = append(c.Voters, m.ID), append(c.Members, m)
	}
	return c
}

// Line is the bindings that a running member tells a process which calls itself m: whether m is bound, and whether to the
// storage id that the process shows.
func Line(m *consensus.Member, shown consensus.StorageID) []Bound {
	if storage := m.Storage; storage.IsZero() || storage == shown {
		return []Bound{{m.ID, storage}}
	}
	return []Bound{{m.ID, OtherStorage}}
}

func lookUp(bindings []Bound, id consensus.MemberID) (consensus.StorageID, bool) {
	for _, b := range bindings {
		if b.Member == id {
			return b.Storage, true
		}
	}
	return consensus.NoStorage, false
}

func compareIDs(a, b consensus.MemberID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
