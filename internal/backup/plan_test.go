package backup_test

import (
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// chain is a history: the head after each entry, that at 0 before the first.
type chain []backup.Head

func newChain(rng *rand.Rand, before backup.Head, n int) chain {
	c := chain{before}
	for range n {
		h := c[len(c)-1]
		h.Index, h.Sum = h.Index+1, rng.Uint64()
		h.Revision, h.Time = h.Revision+kv.Revision(rng.Intn(2)), h.Time+int64(rng.Intn(3))
		c = append(c, h)
	}
	return c
}

const cluster = 4

// add adds a segment of the entries first to last of a chain, whose place in it is relative to its first head.
func (c chain) add(to *backup.Catalog, first, last int, salt uint64) {
	n := backup.SegmentName{Cluster: cluster, Epoch: c[last].Epoch, First: c[first].Index, Before: c[first-1].Sum,
		End: c[last].Point, Moment: c[last].Moment, Hash: backup.HashOf(fmt.Append(nil, first, last, salt))}
	if err := to.Add(n.String(), 1); err != nil {
		panic(err)
	}
}

func (c chain) base(to *backup.Catalog, at int, salt uint64) {
	n := backup.BaseName{Cluster: cluster, Epoch: c[at].Epoch, Point: c[at].Point, Moment: c[at].Moment,
		Hash: backup.HashOf(fmt.Append(nil, at, salt))}
	if err := to.Add(n.String(), 1); err != nil {
		panic(err)
	}
}

// check wants a plan to be a path that holds its target.
func check(t *testing.T, p *backup.Plan, target backup.Target) {
	t.Helper()
	if !target.Within(p.Base.Index, p.Base.Moment) {
		t.Fatalf("the base %+v is after the target %+v", p.Base, target)
	}
	at := p.Base.Index
	for _, s := range p.Segments {
		if s.First > at+1 || s.End.Index <= at {
			t.Fatalf("after entry %d comes segment %d to %d", at, s.First, s.End.Index)
		}
		at = s.End.Index
	}
	if at != p.End.Index {
		t.Fatalf("ends at %d, and says %d", at, p.End.Index)
	}
}

// Plans of random places, with segments of several members that overlap, and objects that are missing. A plan is found where a
// search that tries everything finds one, and only there.
func TestCatalog_Plan_walk(t *testing.T) {
	for seed := range int64(3000) {
		rng := rand.New(rand.NewSource(seed))
		length := 2 + rng.Intn(30)
		c := newChain(rng, backup.Head{Moment: backup.Moment{Revision: 1, Time: 100}}, length)
		catalog := &backup.Catalog{Cluster: cluster}
		for member := range uint64(1 + rng.Intn(3)) {
			for first := 1 + rng.Intn(length); first <= length; {
				last := min(length, first+rng.Intn(6))
				if rng.Intn(6) > 0 {
					c.add(catalog, first, last, member)
				}
				first = last + 1
			}
		}
		for range 1 + rng.Intn(3) {
			c.base(catalog, rng.Intn(length+1), rng.Uint64())
		}
		catalog.Sort()
		var target backup.Target
		newest, _ := catalog.Newest()
		want := newest.Index
		switch rng.Intn(4) {
		case 0:
			target.Index = consensus.Index(1 + rng.Intn(length+2))
			want = target.Index
		case 1:
			target.Revision = kv.Revision(1 + rng.Intn(length))
			want = c.first(func(h backup.Head) bool { return h.Revision >= target.Revision })
		case 2:
			target.Time = 100 + int64(rng.Intn(2*length))
			want = min(newest.Index, c.first(func(h backup.Head) bool { return h.Time > target.Time }))
		}
		p, err := catalog.Plan(target, func(backup.Hash) bool { return false })
		can := exhaustive(catalog, target, want)
		if (err == nil) != can {
			t.Fatalf("seed %d: target %+v: got %v, and it can be reached: %v", seed, target, err, can)
		}
		if err == nil {
			check(t, p, target)
			if p.Short != (target.Time > newest.Time) {
				t.Fatalf("seed %d: target %+v, newest %+v: short %v", seed, target, newest, p.Short)
			}
			if p.End.Index < want {
				t.Fatalf("seed %d: target %+v: ends at %d, before %d", seed, target, p.End.Index, want)
			}
		}
		if u := (*backup.UnreachableError)(nil); err != nil && !errors.As(err, &u) {
			t.Fatal(err)
		}
	}
}

// first returns the index of the first head with a property, or one after the last.
func (c chain) first(has func(backup.Head) bool) consensus.Index {
	for _, h := range c {
		if has(h) {
			return h.Index
		}
	}
	return c[len(c)-1].Index + 1
}

// exhaustive says whether segments lead from a base within the target to an entry.
func exhaustive(c *backup.Catalog, target backup.Target, want consensus.Index) bool {
	reached := map[consensus.Index]bool{}
	for i := range c.Bases {
		if b := &c.Bases[i]; target.Within(b.Index, b.Moment) {
			reached[b.Index] = true
		}
	}
	for grew := true; grew; {
		grew = false
		for i := range c.Segments {
			s := &c.Segments[i]
			for at := range reached {
				if s.First <= at+1 && s.End.Index > at && !reached[s.End.Index] {
					reached[s.End.Index], grew = true, true
				}
			}
		}
	}
	for at := range reached {
		if at >= want {
			return true
		}
	}
	return false
}

// After a recovery that lost entries there are two histories: the one that went on is restored, from a base before the fork
// and from one after it; the other one only by its entries' times and no other way.
func TestCatalog_Plan_fork(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	before := newChain(rng, backup.Head{Moment: backup.Moment{Revision: 1, Time: 100}}, 10)
	lost := newChain(rng, before[10], 5)
	later := before[10]
	later.Epoch++ // the member that was recovered has a clock that is late
	later.Time -= 5
	went := newChain(rng, later, 3)
	catalog := &backup.Catalog{Cluster: cluster}
	before.base(catalog, 2, 0)
	before.add(catalog, 1, 6, 0)
	before.add(catalog, 7, 10, 0)
	lost.add(catalog, 1, 5, 0)
	lost.base(catalog, 5, 0)
	went.add(catalog, 1, 3, 0)
	catalog.Sort()
	p, err := catalog.Plan(backup.Target{}, func(backup.Hash) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	if p.End != went[3] || p.Base.Index != 2 || len(p.Segments) != 3 {
		t.Errorf("got %+v", p)
	}
	p, err = catalog.Plan(backup.Target{Time: before[9].Time}, func(backup.Hash) bool { return false })
	if err != nil || p.Base.Index != 2 {
		t.Errorf("a time before the recovery: %+v, %v", p, err)
	}
	if catalog.Forks() != 0 { // 15 and 13 are different indexes
		t.Errorf("%d forks", catalog.Forks())
	}
	lost.add(catalog, 1, 3, 1)
	if catalog.Forks() != 1 {
		t.Errorf("%d forks", catalog.Forks())
	}
}

// An object that was found to be damaged is left out: an older base, or another member's segments, take its place, or the
// error says which state can be had.
func TestCatalog_Plan_without(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	c := newChain(rng, backup.Head{Moment: backup.Moment{Revision: 1, Time: 100}}, 10)
	catalog := &backup.Catalog{Cluster: cluster}
	c.base(catalog, 0, 0)
	c.base(catalog, 6, 0)
	c.add(catalog, 1, 5, 0)
	c.add(catalog, 6, 8, 0)
	c.add(catalog, 9, 10, 0)
	catalog.Sort()
	bad := map[backup.Hash]bool{}
	without := func(h backup.Hash) bool { return bad[h] }
	p, err := catalog.Plan(backup.Target{}, without)
	if err != nil || p.Base.Index != 6 || len(p.Segments) != 2 {
		t.Fatalf("got %+v, %v", p, err)
	}
	bad[p.Base.Hash] = true
	if p, err = catalog.Plan(backup.Target{}, without); err != nil || p.Base.Index != 0 || len(p.Segments) != 3 {
		t.Fatalf("got %+v, %v", p, err)
	}
	bad[p.Segments[2].Hash] = true
	var unreachable *backup.UnreachableError
	if _, err = catalog.Plan(backup.Target{}, without); !errors.As(err, &unreachable) || unreachable.Best.Index != 8 {
		t.Errorf("got %v", err)
	}
}

func TestParseTarget(t *testing.T) {
	for word, want := range map[string]backup.Target{
		"latest": {}, "70": {Revision: 70}, "entry:70": {Index: 70}, "2026-11-30T12:00:00Z": {Time: 1796040000000},
		"2026-11-30T13:00:00.25+01:00": {Time: 1796040000250},
	} {
		if got, err := backup.ParseTarget(word); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", word, got, err)
		}
	}
	for _, word := range []string{"", "0", "-1", "entry:", "entry:0", "yesterday", "2026-11-30", "1e5"} {
		if got, err := backup.ParseTarget(word); err == nil {
			t.Errorf("%s: got %+v", word, got)
		}
	}
}

// Ensure that a refusal says which state can be had: the first one for a target before it, and for one in a gap the last one before that.
func TestCatalog_Plan_refuses(t *testing.T) {
	c := newChain(rand.New(rand.NewSource(5)), backup.Head{Point: backup.Point{Index: 10}, Moment: backup.Moment{Revision: 10, Time: 1000}}, 20)
	catalog := &backup.Catalog{Cluster: cluster}
	c.base(catalog, 2, 0)
	c.add(catalog, 3, 5, 0)
	c.base(catalog, 12, 0)
	c.add(catalog, 13, 20, 0)
	gap := backup.GapName{Cluster: cluster, After: c[5].Index, Until: c[12].Index + 1, Time: 2000}
	if err := catalog.Add(gap.String(), 1); err != nil {
		t.Fatal(err)
	}
	catalog.Sort()
	for _, row := range []struct {
		target backup.Target
		say    string
	}{
		{backup.Target{Index: 11}, "the first state that can be restored is later: entry 12"},
		{backup.Target{Index: 18}, "entries 16 to 22 were never shipped, a gap that was noted at 1970-01-01T00:00:02.000Z. The last state before it " +
			"that can be restored is entry 15"},
		{backup.Target{Index: 99}, "entry 99 cannot be restored: the place ends before it. The last state before it that can be restored is entry 30"},
	} {
		_, err := catalog.Plan(row.target, func(backup.Hash) bool { return false })
		if err == nil || !strings.Contains(err.Error(), row.say) {
			t.Errorf("%v: %v, want %q", row.target, err, row.say)
		}
	}
}
