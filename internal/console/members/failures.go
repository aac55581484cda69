package members

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
)

// mostChoices is how many members may be chosen.
const mostChoices = 64

// failuresView is a set of members that fail, and what is left then.
type failuresView struct {
	Choices []choice
	Zones   []zone
	Left    int
	Strange []string // words of the query that name no member
	Without string
	Chosen  bool // some member is
	Down    []string
	Said    string // which members are away, in a sentence
	Effects []effect
	Sets    []voterSet
	Half    bool // the old set of a joint configuration is not known
}

// Counted reports whether the sets of voters say more than the effects.
func (v *failuresView) Counted() bool {
	return len(v.Sets) > 1 || slices.ContainsFunc(v.Sets, func(s voterSet) bool { return s.Behind > 0 })
}

// choice is one member in the form.
type choice struct {
	ID, Name, Role, Zone string
	Down                 string // why it counts as failed already; empty: it does not
	Chosen               bool
}

// zone is a link that chooses all members of a zone.
type zone struct{ Name, To string }

// effect is what becomes of writes, or of reads.
type effect struct {
	What, Word, Look, Why string
}

// voterSet is one set of voters: all of a configuration, or the old or the new one while it is joint.
type voterSet struct {
	Name      string
	Up, Of    int
	Need      int
	Behind    int // of those that are up: they lack entries
	Super     int
	ReachedBy string // in words
}

func failures(k *known, r *page.Request) any {
	q := &failuresView{Without: k.Without}
	dead := map[uint64]bool{}
	members := k.Cluster.GetMembers()
	for _, word := range r.Query["die"][:min(len(r.Query["die"]), mostChoices)] {
		id, err := strconv.ParseUint(word, 16, 64)
		if err != nil || !slices.ContainsFunc(members, func(m *quoratepb.Member) bool { return m.GetId() == id }) {
			q.Strange = append(q.Strange, page.Text(word))
			continue
		}
		dead[id], q.Chosen = true, true
	}
	for i, m := range members {
		name := cmp.Or(m.GetName(), observed.Hex(m.GetId()))
		down := ""
		switch {
		case !m.GetStarted():
			down = "not started"
		case !m.GetActive() && !m.GetLeader():
			down, q.Down = "down already", append(q.Down, name)
		}
		if i >= mostChoices {
			q.Left++
			continue
		}
		q.Choices = append(q.Choices, choice{ID: observed.Hex(m.GetId()), Name: name, Role: role(m), Zone: m.GetZone(),
			Down:   down,
			Chosen: dead[m.GetId()]})
	}
	q.Zones = zonesOf(members)
	q.Said = away(q)
	q.Effects, q.Sets = weigh(k.Cluster, dead)
	q.Half = halfKnown(k.Cluster)
	return q
}

// zonesOf are the zones of members, if there are several.
func zonesOf(members []*quoratepb.Member) (zones []zone) {
	ids := map[string][]string{}
	for _, m := range members[:min(len(members), mostChoices)] {
		if m.GetZone() != "" {
			ids[m.GetZone()] = append(ids[m.GetZone()], "die="+observed.Hex(m.GetId()))
		}
	}
	for name, chosen := range ids {
		zones = append(zones, zone{name, "/members?" + strings.Join(chosen, "&") + "#failures"})
	}
	slices.SortFunc(zones, func(a, b zone) int { return cmp.Compare(a.Name, b.Name) })
	if len(zones) < 2 {
		return nil
	}
	return zones[:min(len(zones), mostSquare)]
}

// away says which members are taken to be down.
func away(q *failuresView) string {
	var chosen []string
	for _, c := range q.Choices {
		if c.Chosen && c.Down == "" {
			chosen = append(chosen, c.Name)
		}
	}
	down := ""
	if len(q.Down) > 0 {
		down = strings.Join(q.Down, ", ") + " " + plural.Word(len(q.Down), "is", "are") + " down already"
	}
	switch {
	case len(chosen) == 0 && down == "":
		return "All members that have started are up."
	case len(chosen) == 0:
		return down + "."
	case down == "":
		return "Without " + strings.Join(chosen, ", ") + ":"
	}
	return "Without " + strings.Join(chosen, ", ") + ", while " + down + ":"
}

// weigh counts the voters that are left in each set of a configuration, and says what they can do.
func weigh(c *quoratepb.Cluster, dead map[uint64]bool) ([]effect, []voterSet) {
	sets := setsOf(c, dead)
	worst, behind, alive := sets[0], false, 0
	for _, s := range sets {
		if s.Up-s.Need < worst.Up-worst.Need {
			worst = s
		}
		behind = behind || s.Up >= s.Need && s.Up-s.Behind < s.Need
	}
	for _, m := range c.GetMembers() {
		if up(m, dead) {
			alive++
		}
	}
	writable := worst.Up >= worst.Need && worst.Of > 0
	writes := effect{"Writes", "go on", "good", fmt.Sprintf("%d of %s up, %d needed", worst.Up, plural.Of(worst.Of, "voter"),
		worst.Need)}
	switch {
	case !writable:
		writes.Word, writes.Look = "stop", "bad"
		writes.Why += ": until " + plural.Of(worst.Need-worst.Up, "more voter") + " " + plural.Word(worst.Need-worst.Up,
			"runs", "run")
	case halfKnown(c):
		writes.Word, writes.Look = "not known", "warn"
		writes.Why += ", and a majority of the old set, which only the leader tells"
	case behind:
		writes.Word, writes.Look = "wait", "warn"
		writes.Why += ", but some of them must catch up first"
	case c.GetLeader() == 0:
		writes.Word, writes.Look = "wait", "warn"
		writes.Why += ", but no leader is known: one must be elected first"
	case dead[c.GetLeader()]:
		writes.Why += "; they wait until another leader is elected, for about an election timeout"
	}
	reads := effect{"Linearizable reads", writes.Word, writes.Look, "they need a majority, as writes do"}
	local := effect{"Serializable reads", "go on", "good", "any member that is up answers them, with what it has"}
	if alive == 0 {
		local.Word, local.Look, local.Why = "stop", "bad", "no member is up"
	}
	return []effect{writes, oneTrip(c, sets, writes.Word == "go on"), reads, local, more(worst, writable)}, sets
}

// oneTrip is whether writes may be answered after one round trip. Up to three voters the leader and the member that was asked
// are a majority, which needs nothing else (docs/fast-path.md, the inferred commit); more voters need a superquorum.
func oneTrip(c *quoratepb.Cluster, sets []voterSet, writable bool) effect {
	e := effect{What: "Writes in one round trip", Word: "stop", Look: "warn"}
	n := sets[0]
	switch {
	case !writable:
		e.Look, e.Why = "bad", "nothing is written"
	case c.GetJoint(), !c.GetSettled():
		e.Why = "a change of members is under way: writes go by the leader until it is settled"
	case n.Of <= 3:
		e.Word, e.Look, e.Why = "go on", "good", "with up to three voters a majority is enough"
	case n.Up < n.Super:
		e.Why = fmt.Sprintf("%d of %d up, a superquorum is %d: writes go by the leader, in two round trips", n.Up, n.Of,
			n.Super)
	default:
		e.Word, e.Look, e.Why = "go on", "good", fmt.Sprintf("%d of %d up, a superquorum is %d", n.Up, n.Of, n.Super)
	}
	return e
}

// more is how many more voters may fail after that.
func more(worst voterSet, writable bool) effect {
	e := effect{What: "More failures", Word: "none", Look: "bad", Why: "writes have stopped"}
	if !writable {
		return e
	}
	switch left := worst.Up - worst.Need; left {
	case 0:
		e.Look, e.Why = "warn", "writes stop with the next voter that fails"
	default:
		e.Word, e.Look, e.Why = strconv.Itoa(left), "good", "whichever voters they are"
	}
	return e
}

func up(m *quoratepb.Member, dead map[uint64]bool) bool {
	return (m.GetActive() || m.GetLeader()) && !dead[m.GetId()]
}

// setsOf are the sets of voters of a configuration: one, or the new and the old one while it is joint.
func setsOf(c *quoratepb.Cluster, dead map[uint64]bool) []voterSet {
	in := []quoratepb.Role{quoratepb.Role_ROLE_VOTER, quoratepb.Role_ROLE_INCOMING}
	out := []quoratepb.Role{quoratepb.Role_ROLE_VOTER, quoratepb.Role_ROLE_OUTGOING, quoratepb.Role_ROLE_DEMOTING}
	if !c.GetJoint() || halfKnown(c) {
		return []voterSet{setOf("voters", c, in, dead)}
	}
	return []voterSet{setOf("voters of the new set", c, in, dead), setOf("voters of the old set", c, out, dead)}
}

// halfKnown reports whether a configuration is joint and its old set is not known: no member has a role in one set alone, and a
// change that moves no vote is not joint.
func halfKnown(c *quoratepb.Cluster) bool {
	return c.GetJoint() && !slices.ContainsFunc(c.GetMembers(), func(m *quoratepb.Member) bool {
		return m.GetRole() == quoratepb.Role_ROLE_INCOMING || m.GetRole() == quoratepb.Role_ROLE_OUTGOING ||
			m.GetRole() == quoratepb.Role_ROLE_DEMOTING
	})
}

func setOf(name string, c *quoratepb.Cluster, roles []quoratepb.Role, dead map[uint64]bool) voterSet {
	v := voterSet{Name: name}
	for _, m := range c.GetMembers() {
		if !slices.Contains(roles, m.GetRole()) {
			continue
		}
		v.Of++
		if up(m, dead) {
			v.Up++
			if !m.GetCaughtUp() && !m.GetLeader() {
				v.Behind++
			}
		}
	}
	v.Need, v.Super = quorum.Majority(v.Of), quorum.Super(v.Of)
	v.ReachedBy = map[bool]string{true: "a majority", false: "no majority"}[v.Up >= v.Need && v.Of > 0]
	return v
}
