package replay_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// forger puts segments of a history that the cluster never had, which is that of true machines, beside the segments of the cluster.
type forger struct {
	*testing.T
	f    *forked // before is the cluster
	next [2]backup.Stored
	at   consensus.Index // an entry within the first of these, which is asked for
	own  []backup.Item   // from the first entry of next on
	made []backup.Item
}

// items are those of all segments of a member, by index.
func (m *member) items() map[consensus.Index]backup.Item {
	all := map[consensus.Index]backup.Item{}
	for _, s := range m.catalog().Segments {
		content, _ := m.place.Bytes(s.String())
		segment, err := backup.Unpack(&s.SegmentName, content)
		if err != nil {
			m.t.Fatal(err)
		}
		for _, item := range segment.Items {
			all[item.Entry.Index] = item
		}
	}
	return all
}

func newForger(t *testing.T) *forger {
	a, b := newMember(t, 5, openMem), newMember(t, 105, openMem)
	var commands []kv.Command
	for i := range 80 {
		if i == 30 {
			a.settle()
		}
		commands = append(commands, a.command())
		a.apply(commands[i])
	}
	a.settle()
	g := &forger{T: t, f: &forked{before: a, after: a}}
	c := a.catalog()
	for i := range c.Segments[:len(c.Segments)-1] {
		if s := c.Segments[i]; s.First > 30 && s.End.Index > s.First+5 && c.Segments[i+1].Start() == s.End {
			g.next = [2]backup.Stored{s, c.Segments[i+1]}
			break
		}
	}
	g.at = g.next[0].First + 2
	for _, base := range c.Bases {
		if base.Index >= g.next[0].First {
			a.place.Remove(base.String())
		}
	}
	for i := range consensus.Index(80) {
		if i+1 < g.next[0].First {
			b.apply(commands[i])
		} else {
			b.apply(b.command())
		}
	}
	b.settle()
	trueItems, others := a.items(), b.items()
	for i := g.next[0].First; i <= g.next[1].End.Index; i++ {
		item := others[i]
		item.Time = trueItems[i].Time
		g.own, g.made = append(g.own, trueItems[i]), append(g.made, item)
	}
	return g
}

// put puts a segment of entries of the false history up to one, and of the true one behind it; first says that a plan is to take
// it first.
func (g *forger) put(from, until, to consensus.Index, first string) backup.Head {
	g.Helper()
	begin := g.next[0].First
	items := slices.Concat(g.made[:until+1-begin], g.own[until+1-begin:])[from-begin : to+1-begin]
	content, _ := g.f.before.place.Bytes(g.next[0].String())
	segment, err := backup.Unpack(&g.next[0].SegmentName, content)
	if err != nil {
		g.Fatal(err)
	}
	if segment.Items = items; from > begin {
		before := g.made[from-1-begin]
		segment.Before, segment.RevisionBefore = before.Sum, before.Revision
	}
	for try := byte(0); ; try++ {
		segment.Predecessor = backup.Hash{try}
		name, packed := backup.NewPacker().Pack(segment)
		if first == "" || name.String() < first {
			g.f.before.replace(name.String(), packed)
			return name.Head()
		}
	}
}

// garbage puts an object with the name of a segment that leads from a false state back to the end of next.
func (g *forger) garbage(from backup.Head) {
	name := g.next[1].SegmentName
	name.First, name.Before, name.Hash = from.Index+1, from.Sum, backup.HashOf([]byte("garbage"))
	g.f.before.replace(name.String(), []byte("garbage"))
}

// never wants that no state which the cluster never had is restored, and returns the error.
func (g *forger) never(target backup.Target, of *backup.Head) error {
	g.Helper()
	got, err := g.f.sole(g.T, target, of)
	if err == nil && got != g.f.before.was[g.at] {
		g.Errorf("%v: restored what the cluster never had: %s", target, got)
	}
	return err
}

// Ensure that made-up segments whose names claim to lead back to the cluster's own history let no state be restored that the cluster
// never had, and that its own states can be had, perhaps by the name of the history.
func TestRun_claims(t *testing.T) {
	target := func(g *forger, n int) backup.Target {
		return [...]backup.Target{{Index: g.at}, {Time: g.f.before.at[g.at].Time}}[n]
	}
	for n := range 2 {
		for what, forge := range map[string]func(g *forger) backup.Head{
			"back by garbage": func(g *forger) backup.Head {
				fork := g.put(g.next[0].First, g.at, g.at, "")
				g.garbage(fork)
				return fork
			},
			"back by true sums": func(g *forger) backup.Head {
				fork := g.put(g.next[0].First, g.at, g.at, "")
				g.put(g.at+1, g.at, g.next[1].End.Index, "")
				return fork
			},
			"back by true sums, later": func(g *forger) backup.Head {
				fork := g.put(g.next[0].First, g.at, g.at, "")
				g.put(g.at+1, g.next[0].End.Index+1, g.next[1].End.Index, "")
				return fork
			},
		} {
			g := newForger(t)
			fork := forge(g)
			newest, _ := g.f.before.catalog().Newest()
			err := g.never(target(g, n), nil)
			two, is := errors.AsType[*backup.HistoriesError](err)
			if !is || !slices.ContainsFunc(two.Ends, func(h backup.Head) bool { return h.Point == fork.Point }) {
				t.Errorf("%s: %v", what, err)
				continue
			}
			own := g.next[0].Head()
			for _, of := range []*backup.Head{&newest, &own} {
				if err := g.never(target(g, n), of); err != nil && !errors.As(err, &two) {
					t.Errorf("%s, of %v: %v", what, of, err)
				} else if err != nil && of == &own {
					t.Errorf("%s: the cluster's own history cannot be had: %v", what, err)
				}
			}
			if _, err := g.f.sole(t, target(g, n), &fork); err != nil {
				t.Errorf("%s: the fork, by its name: %v", what, err)
			}
		}
		g := newForger(t)
		g.put(g.next[0].First, g.at, g.next[0].End.Index, g.next[0].String())
		if err := g.never(target(g, n), nil); err != nil {
			t.Errorf("within one segment: %v", err)
		}
	}
}

// Ensure that a base with other contents, on which a fork applies and the cluster's own log does not, makes no restore take the
// fork: neither from there nor from a true base.
func TestRun_claimsOnOtherBase(t *testing.T) {
	for _, whole := range []bool{false, true} {
		g := newForger(t)
		m := g.f.before
		own, before := g.next[0], backup.Base{}
		before.Cluster, before.Point = cluster, own.Start()
		before.Moment = m.at[before.Index]
		fork := m.fork(&before, int(g.next[1].First+1-own.First), 'f')
		m.spoil(before)
		for i := range fork.Items {
			fork.Items[i].Time = m.at[fork.Items[i].Entry.Index].Time
		}
		name, packed := backup.NewPacker().Pack(fork)
		m.replace(name.String(), packed)
		if whole {
			g.garbage(name.Head())
		}
		for _, target := range []backup.Target{{Index: g.at}, {Time: m.at[g.at].Time}} {
			err := g.never(target, nil)
			if two := (*backup.HistoriesError)(nil); err != nil && !errors.As(err, &two) {
				t.Errorf("%v: %v", target, err)
			}
		}
	}
}

// Ensure that made-up segments whose sums no machine has, and which a plan takes first, end no restore: the line of the others is
// whole.
func TestRun_claimsOfNothing(t *testing.T) {
	g := newForger(t)
	begin := g.next[0].First
	g.made[g.at-begin].Sum++
	g.garbage(g.put(begin, g.at, g.at, ""))
	if err := g.never(backup.Target{Index: g.at}, nil); err != nil {
		t.Error(err)
	}
}
