package identity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/consensus"
)

// Seen is what is remembered, on disk, of one data directory of another member.
type Seen struct {
	Member  consensus.MemberID
	Storage consensus.StorageID
	Life    consensus.Life // the highest that was proved: see Evidence
	// Lost says that the directory was found rolled back: no life of it is accepted again.
	Lost bool
}

// maxSeen bounds what is remembered beyond the members of the configuration: the directories of non-members.
const maxSeen = 64

// Guard decides about the claims of others. It starts with what was remembered, and tells when there is more to remember.
type Guard struct {
	own    Claim
	rules  Rules
	config consensus.Config // members only: who is bound to what
	seen   []Seen           // sorted by storage id
	// unsaved says that seen holds what may not be on disk yet.
	unsaved bool
	// histories are the members at whose addresses processes of another history answer: see Contradicted.
	histories []consensus.MemberID
}

// NewGuard returns the guard of a member that claims own, remembers seen and knows no configuration yet.
func NewGuard(own Claim, seen []Seen, rules Rules) *Guard {
	g := &Guard{own: own, rules: rules, seen: slices.Clone(seen)}
	slices.SortFunc(g.seen, func(a, b Seen) int { return a.Storage.Compare(b.Storage) })
	return g
}

// Own returns the claim of the guard's own member.
func (g *Guard) Own() Claim { return g.own }

// Configure makes members, sorted by id, the ones of the configuration in force.
func (g *Guard) Configure(members []consensus.Member) {
	g.config.Members = slices.Clone(members)
	g.histories = slices.DeleteFunc(g.histories, func(id consensus.MemberID) bool { return !g.config.Contains(id) })
}

// Config returns the configuration in force, as far as the guard knows it: its members, without their roles.
func (g *Guard) Config() *consensus.Config { return &g.config }

// Seen returns what must be remembered.
func (g *Guard) Seen() []Seen { return slices.Clone(g.seen) }

// Saved notes that what Seen returns is on disk. Until then each claim that is accepted asks for it again.
func (g *Guard) Saved() { g.unsaved = false }

// Speaker is a life of the same data directory of which there is evidence, and that has been heard since the claim came. Zero:
// none has. Any process that opens a stream can say that it is the life before, or the next one.
type Speaker struct {
	Life    consensus.Life
	Address string
}

// Meet judges a claim on the other end of a connection. speaker is another life of the claimed storage id that still speaks.
// If remember is set, what Seen returns must be on disk before anything that comes under the claim is believed, and
// Saved be called then. A later life of which there is no evidence is welcome, is not remembered, and ends no other life:
// Proved.
func (g *Guard) Meet(c *Claim, evidence Evidence, speaker Speaker) (refusal *Refusal, remember bool) {
	if refusal := g.judge(c); refusal != nil {
		return refusal, false
	}
	if c.Storage.IsZero() || c.Life.IsZero() || g.rules.IgnoreLives {
		return nil, false
	}
	return g.meetLife(c, evidence.Believed(g.rules), speaker)
}

// OtherCluster says what to do about a claim of another cluster.
func OtherCluster(c, own *Claim) string {
	return fmt.Sprintf("it is of cluster %v, this member (%v) of cluster %v: correct its peer URLs, or this member's. If "+
		"`quorate snapshot restore` made its data while this cluster serves, stop it, move that directory aside, start it "+
		"with "+typed.Emptied+", and `quorate member reset` it here", c.Cluster, own.Member, own.Cluster)
}

// judge judges a claim without regard to lives.
func (g *Guard) judge(c *Claim) *Refusal {
	own := &g.own
	switch {
	case c.Cluster != own.Cluster:
		return refuse(ForeignCluster, "%s", OtherCluster(c, own))
	case c.Epoch != own.Epoch:
		return refuse(OtherEpoch, "it is of epoch %v of cluster %v, this member (%v, data directory %v) of epoch %v: one of "+
			"them was recovered without the other", c.Epoch, c.Cluster, own.Member, own.Storage, own.Epoch)
	case c.Member == consensus.NoMember || c.Member == own.Member:
		return refuse(WrongMember, "it calls itself %v, at %s, and this member is %v, at %s: two processes have one id",
			c.Member, c.address(), own.Member, own.address())
	}
	binding := g.config.BindingOf(c.Member, c.Storage)
	switch {
	case g.rules.IgnoreBinding || binding == consensus.BindingOwn:
		return nil
	case slices.Contains(g.histories, c.Member):
		return refuse(OtherHistory, "%s", g.OtherHistory(c.Member))
	case binding != consensus.BindingOther:
		return nil
	}
	m, _ := g.config.Member(c.Member)
	return refuse(LostDisk, "member %v (%s) is bound to data directory %v, and the process at %s has another one, %v: its "+
		"disk was lost or exchanged. It may not vote. If %s was moved and has its data elsewhere, stop this process. Else "+
		"start it with its own directory; if that is lost for ever, `quorate member reset %s` from any member that serves. "+
		"But if it serves, with others, it is this member (%v) that is of another history of the cluster: stop this one",
		c.Member, m.Name, m.Storage, c.address(), c.Storage, nameOr(&m), typed.Word(nameOr(&m)), own.Member)
}

func nameOr(m *consensus.Member) string {
	if m.Name != "" {
		return m.Name
	}
	return m.ID.String()
}

// Proved reports whether the life of a claim is the one that was met last with evidence.
func (g *Guard) Proved(c *Claim) bool {
	if c.Storage.IsZero() || c.Life.IsZero() || g.rules.IgnoreLives {
		return true
	}
	at, known := g.find(c.Storage)
	return known && g.seen[at].Life == c.Life
}

// meetLife applies invariant 4.
func (g *Guard) meetLife(c *Claim, proved bool, speaker Speaker) (refusal *Refusal, remember bool) {
	at, known := g.find(c.Storage)
	var last consensus.Life
	if known {
		last = g.seen[at].Life
	}
	switch {
	case known && g.seen[at].Lost:
		return g.rolledBack(c, last), false
	case known && c.Life == last:
		return nil, g.unsaved
	case known && !speaker.Life.IsZero() && speaker.Life != c.Life:
		return refuse(Cloned, "data directory %v of member %v is in use by two processes: start %v at %s still speaks, "+
			"and start %v at %s came after it. One is a copy: see which, and stop that one only. What is to run "+
			"there is another member, with a name and a directory of its own", c.Storage, c.Member, speaker.Life,
			address(speaker.Address), c.Life, c.address()), false
	case known && c.Life.Boots <= last.Boots:
		return g.rolledBack(c, last), false
	case !known && g.config.BindingOf(c.Member, c.Storage) == consensus.BindingNonMember:
		return nil, false // no member counts it, and none need remember it
	case !proved:
		return nil, false
	}
	if known {
		g.seen[at].Life, g.seen[at].Member = c.Life, c.Member
	} else {
		g.seen = slices.Insert(g.seen, at, Seen{Member: c.Member, Storage: c.Storage, Life: c.Life})
		g.forgetNonMembers()
	}
	g.unsaved = true
	return nil, true
}

func address(text string) string { return (&Claim{Address: text}).address() }

func (g *Guard) rolledBack(c *Claim, last consensus.Life) *Refusal {
	m, _ := g.config.Member(c.Member)
	m.ID = c.Member
	return refuse(RolledBack, "data directory %v of member %v, at %s, comes with start %v, and start %v was seen: it is an "+
		"older copy, or it denied what it had acknowledged. It may not vote any more: %s", c.Storage, c.Member,
		c.address(), c.Life, last, typed.StartOver("the directory", "the process", "", nameOr(&m)))
}

// Distrust notes that a data directory denied what it had acknowledged: it counts as lost. It reports whether that is news,
// which must be on disk.
func (g *Guard) Distrust(member consensus.MemberID, storage consensus.StorageID) bool {
	at, known := g.find(storage)
	switch {
	case storage.IsZero() || known && g.seen[at].Lost:
		return false
	case !known:
		g.seen = slices.Insert(g.seen, at, Seen{Member: member, Storage: storage})
	}
	g.seen[at].Lost = true
	return true
}

func (g *Guard) find(storage consensus.StorageID) (at int, found bool) {
	return slices.BinarySearchFunc(g.seen, storage, func(s Seen, id consensus.StorageID) int { return s.Storage.Compare(id) })
}

// forgetNonMembers drops the directories that no member of the configuration is bound to while there are too many of them.
func (g *Guard) forgetNonMembers() {
	for i := 0; len(g.seen) > maxSeen && i < len(g.seen); {
		s := &g.seen[i]
		if g.config.BindingOf(s.Member, s.Storage) == consensus.BindingOwn {
			i++
			continue
		}
		g.seen = slices.Delete(g.seen, i, i+1)
	}
}

// Contradicted notes that the process that answers at the address of a member refused this one, which need not obey: it has
// another history. Until a member that answers there accepts this one, only the directory that is bound to it speaks for it.
// It reports whether that is news.
func (g *Guard) Contradicted(by consensus.MemberID) (news bool) {
	if slices.Contains(g.histories, by) || !g.config.Contains(by) {
		return false
	}
	g.histories = append(g.histories, by)
	return true
}

// Accepted notes that the process that answers at the address of a member has accepted this one.
func (g *Guard) Accepted(by consensus.MemberID) {
	g.histories = slices.DeleteFunc(g.histories, func(id consensus.MemberID) bool { return id == by })
}

// OtherHistory tells of the process of another history at the address of a member, and what to do; empty if there is none. It
// is true on both sides, since neither can know which one is to be kept.
func (g *Guard) OtherHistory(id consensus.MemberID) string {
	m, known := g.config.Member(id)
	if !known || !slices.Contains(g.histories, id) {
		return ""
	}
	self, _ := g.config.Member(g.own.Member)
	self.ID = g.own.Member
	return fmt.Sprintf("the process at the address of %s (%v, %s) is of another history of cluster %v: it knows %s by another "+
		"data directory, and here %s is bound to its own, %v. So two clusters have one id: both were restored from one file, "+
		"or founded, with the same --initial-cluster-token. Nothing passes between them. Keep the one that serves, stop what "+
		"is left of the other, and move its data directories aside", nameOr(&m), m.ID, strings.Join(m.PeerURLs, ","),
		g.own.Cluster, nameOr(&self), nameOr(&self), g.own.Storage)
}
