package keep_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

const (
	cluster = 4
	hour    = int64(3600_000)
	begun   = 1_790_000_000_000
)

// place is what lies at a place: bases and segments, by their names.
type place struct {
	bases    []keep.Base
	segments []backup.SegmentName
	holds    map[backup.Hash]history // what segments hold
}

// history is a chain of states, in one epoch.
type history []backup.Head

// grow adds states to a history. Clocks jump now and then.
func grow(rng *rand.Rand, h history, n int) history {
	for range n {
		next := h[len(h)-1]
		next.Index, next.Sum = next.Index+1, rng.Uint64()
		next.Revision += kv.Revision(rng.Intn(2))
		next.Time += rng.Int63n(12 * hour)
		if rng.Intn(200) == 0 {
			next.Time += 9000 * hour
		}
		h = append(h, next)
	}
	return h
}

// ship puts what a member ships of a history from a state on, now and then with holes.
func (p *place) ship(rng *rand.Rand, h history, from int, salt uint64) {
	for first := from; first < len(h); {
		last := min(len(h)-1, first+rng.Intn(6))
		if rng.Intn(30) > 0 {
			s := backup.SegmentName{Cluster: cluster, Epoch: h[last].Epoch, First: h[first].Index, Before: h[first-1].Sum,
				End: h[last].Point, Moment: h[last].Moment, Hash: backup.HashOf(fmt.Append(nil, h[last].Epoch, h[last].Sum, first, salt))}
			p.segments = append(p.segments, s)
			p.holds[s.Hash] = slices.Clone(h[first-1 : last+1]) // with the state before
		}
		first = last + 1
	}
	for i := from; i < len(h); i++ {
		if i == from || rng.Intn(5) == 0 {
			b := keep.Base{BaseName: backup.BaseName{Cluster: cluster, Epoch: h[i].Epoch, Point: h[i].Point, Moment: h[i].Moment,
				Hash: backup.HashOf(fmt.Append(nil, h[i].Epoch, h[i].Sum, salt))}, Taken: h[i].Time}
			if rng.Intn(8) == 0 {
				b.State = keep.State(rng.Intn(3))
			}
			p.bases = append(p.bases, b)
		}
	}
}

// random returns a place to which some members shipped, with recoveries between that lost entries.
func random(rng *rand.Rand) *place {
	p := &place{holds: map[backup.Hash]history{}}
	h := history{{Moment: backup.Moment{Revision: 1, Time: begun}}}
	for range 1 + rng.Intn(3) { // epochs
		h = grow(rng, h, 1+rng.Intn(60))
		for member := range uint64(1 + rng.Intn(2)) {
			p.ship(rng, h, 1+rng.Intn(len(h)-1), member)
		}
		h = slices.Clone(h[:1+rng.Intn(len(h))])
		for i := range h { // the members are of the next epoch, and may ship again what they have
			h[i].Epoch++
		}
	}
	return p
}

func (p *place) catalog() *backup.Catalog {
	c := &backup.Catalog{Cluster: cluster}
	for i := range p.bases {
		if p.bases[i].State == keep.Whole {
			if err := c.Add(p.bases[i].String(), 1); err != nil {
				panic(err)
			}
		}
	}
	for i := range p.segments {
		if err := c.Add(p.segments[i].String(), 1); err != nil {
			panic(err)
		}
	}
	c.Sort()
	return c
}

func (p *place) plan(rule keep.Rule, now int64) *keep.Plan {
	in := &keep.Input{Rule: rule, Bases: p.bases, Firsts: map[uint64]consensus.Index{}, Now: now}
	for i := range p.segments {
		s := &p.segments[i]
		if first, found := in.Firsts[s.Epoch]; !found || s.First < first {
			in.Firsts[s.Epoch] = s.First
		}
	}
	return keep.Make(in)
}

// remove removes what a plan does not keep, and returns how many bases that were.
func (p *place) remove(plan *keep.Plan) (bases int) {
	before := len(p.bases)
	p.bases = nil
	for i := range plan.Fates {
		if plan.Fates[i].Kept {
			p.bases = append(p.bases, plan.Fates[i].Base)
		}
	}
	p.segments = slices.DeleteFunc(p.segments, func(s backup.SegmentName) bool { return s.End.Index <= plan.Floor })
	return before - len(p.bases)
}

// restore restores a target as package replay does: a segment that does not continue the state before it is left out.
func (p *place) restore(c *backup.Catalog, target backup.Target) (backup.Head, error) {
	bad := map[backup.Hash]bool{}
	for {
		plan, err := c.Plan(target, func(h backup.Hash) bool { return bad[h] })
		if err != nil {
			return backup.Head{}, err
		}
		at := plan.Base.Head()
		for i := range plan.Segments {
			s := &plan.Segments[i]
			states := p.holds[s.Hash]
			if states[at.Index-states[0].Index].Sum != at.Sum {
				bad[s.Hash] = true
				break
			}
			for _, next := range states[at.Index-states[0].Index+1:] {
				if target.Within(next.Index, next.Moment) {
					at = next
				}
			}
		}
		if len(plan.Segments) == 0 || !slices.ContainsFunc(plan.Segments, func(s backup.Stored) bool { return bad[s.Hash] }) {
			return at, nil
		}
	}
}

// Places of several members, epochs, forks, holes, damaged bases and clocks that jump, and rules of all kinds. Whatever they
// are: a moment of the window that could be restored still can be, to a state of the same history; a base that is kept can be
// restored by itself; the last two that are whole stay; no more than half goes at once; and what was planned twice goes once.
func TestMake_walk(t *testing.T) {
	removed, refused := 0, 0
	for seed := range int64(800) {
		rng := rand.New(rand.NewSource(seed))
		p := random(rng)
		rule := keep.Rule{Window: time.Duration(1+rng.Intn(20*24)) * time.Hour}
		if rng.Intn(2) == 0 {
			rule.Daily, rule.Weekly, rule.Monthly, rule.Yearly = rng.Intn(9), rng.Intn(4), rng.Intn(4), rng.Intn(2)
		}
		for range 5 {
			before := p.catalog()
			plan := p.plan(rule, begun+20000*hour)
			if plan.Refused != "" {
				refused++
			}
			had, all := p.bases, len(p.bases)
			n := p.remove(plan)
			if removed += n; n > max(1, all/2) {
				t.Fatalf("seed %d: %d of %d bases go", seed, n, all)
			}
			checkWhole(t, seed, had, p.bases)
			if n == 0 {
				break
			}
			check(t, seed, rule, before, p, plan)
		}
	}
	if removed < 1000 || refused == 0 {
		t.Errorf("%d bases were removed, %d plans refused: the walk shows nothing", removed, refused)
	}
}

// checkWhole wants the last two whole bases to stay, and those that cannot be read.
func checkWhole(t *testing.T, seed int64, had, has []keep.Base) {
	t.Helper()
	sorted := slices.SortedFunc(slices.Values(had), func(a, b keep.Base) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Index, b.Index), bytes.Compare(a.Hash[:], b.Hash[:]))
	})
	whole := 0
	for _, b := range slices.Backward(sorted) {
		if b.State == keep.Whole {
			whole++
		}
		if (b.State == keep.Unreadable || b.State == keep.Whole && whole <= 2) && !slices.Contains(has, b) {
			t.Fatalf("seed %d: %+v is gone", seed, b)
		}
	}
}

// check wants what could be restored to moments of the window to be restored still.
func check(t *testing.T, seed int64, rule keep.Rule, before *backup.Catalog, p *place, plan *keep.Plan) {
	t.Helper()
	after := p.catalog()
	newest := backup.Head{}
	for i := range plan.Fates {
		if f := &plan.Fates[i]; f.State == keep.Whole {
			newest = f.Head()
		}
	}
	cutoff := newest.Time - rule.Window.Milliseconds()
	for i := range before.Segments {
		for _, target := range []backup.Target{{Time: max(1, before.Segments[i].Time)}, {Time: max(1, before.Segments[i].Time+1)}} {
			if target.Time < cutoff {
				continue
			}
			could, err := p.restore(before, target)
			if err != nil {
				continue
			}
			can, err := p.restore(after, target)
			if err != nil {
				t.Fatalf("seed %d: %v, %v: %v\n%v", seed, rule, target, err, describe(plan))
			}
			if can.Epoch < could.Epoch {
				t.Fatalf("seed %d: %v, %v: epoch %d, before %d\n%v", seed, rule, target, can.Epoch, could.Epoch,
					describe(plan))
			}
		}
	}
	for i := range after.Bases {
		if _, err := p.restore(after, backup.Target{Index: after.Bases[i].Index}); err != nil {
			t.Fatalf("seed %d: the base of entry %d: %v", seed, after.Bases[i].Index, err)
		}
	}
}

func describe(p *keep.Plan) string {
	var text strings.Builder
	fmt.Fprintf(&text, "floor %d, refused %q\n", p.Floor, p.Refused)
	for i := range p.Fates {
		f := &p.Fates[i]
		fmt.Fprintf(&text, "%d-%d %s state %d kept %v log %v %v\n", f.Epoch, f.Index, backup.Time(f.Time), f.State, f.Kept, f.Log,
			f.Why)
	}
	return text.String()
}

// at is a whole base of an entry, some days after the beginning.
func at(epoch uint64, index consensus.Index, days float64) keep.Base {
	ms := begun + int64(days*24*float64(hour))
	return keep.Base{BaseName: backup.BaseName{Cluster: cluster, Epoch: epoch, Point: backup.Point{Index: index, Sum: uint64(index)},
		Moment: backup.Moment{Revision: kv.Revision(index), Time: ms}}, Taken: ms}
}

// kept returns the entries of the bases that a plan keeps.
func kept(p *keep.Plan) (all []consensus.Index) {
	for i := range p.Fates {
		if p.Fates[i].Kept {
			all = append(all, p.Fates[i].Index)
		}
	}
	return all
}

// Ensure that times that cannot be let nothing go: a clock that jumped by a year and is taken for right by all, a backup that was
// stopped for months, a base from the future of this clock, and of the place's; and that two states of an entry let nothing go.
func TestMake_times(t *testing.T) {
	var steady []keep.Base
	for i := range 12 { // one a day
		steady = append(steady, at(0, consensus.Index(i+1), float64(i)))
	}
	later := append(slices.Clone(steady), at(0, 13, 400))
	ahead := append(slices.Clone(steady), at(0, 13, 12))
	ahead[12].Taken -= 30 * hour
	forked := append(slices.Clone(steady), at(0, 12, 11))
	forked[12].Sum++
	rule := keep.Rule{Window: 7 * day}
	for name, c := range map[string]struct {
		bases []keep.Base
		now   float64 // days
		first consensus.Index
		why   string
	}{
		"steady":                 {steady, 11, 4, ""}, // seven days and an hour before the last one
		"a step of a year":       {later, 400, 6, ""}, // counts as 42 hours
		"this clock is late":     {steady, 10.9, 1, "the clock here says"},
		"a little late":          {steady, 10.97, 4, ""},
		"the place's clock":      {ahead, 400, 1, "by its own clock"},
		"two states of an entry": {forked, 400, 1, "two different states of entry 12"},
	} {
		p := keep.Make(&keep.Input{Rule: rule, Bases: c.bases, Now: begun + int64(c.now*24*float64(hour))})
		if got := kept(p); got[0] != c.first || len(got) != len(c.bases)-int(c.first)+1 || !strings.Contains(p.Refused, c.why) ||
			(p.Refused == "") != (c.why == "") {
			t.Errorf("%s: %v, %q; want from %d", name, got, p.Refused, c.first)
		}
	}
}

// Ensure that a base of a history that a recovery lost does not replace the one before it: the states that came instead need it.
func TestMake_recovery(t *testing.T) {
	in := &keep.Input{Rule: keep.Rule{Window: 2 * day}, Now: begun + 1000*hour,
		Bases: []keep.Base{at(0, 1, 0), at(0, 2, 1), at(0, 15, 2), at(1, 20, 3), at(1, 25, 4),
			at(1, 30, 5)},
		Firsts: map[uint64]consensus.Index{0: 1, 1: 11}}
	if got := keep.Make(in); !slices.Equal(kept(got), []consensus.Index{2, 15, 20, 25, 30}) || got.Floor != 2 {
		t.Errorf("got %v", describe(got))
	}
	in.Firsts[1] = 16
	if got := keep.Make(in); !slices.Equal(kept(got), []consensus.Index{15, 20, 25, 30}) || got.Floor != 15 {
		t.Errorf("without entries between: %v", describe(got))
	}
}

// Ensure that the last bases of days, weeks, months and years stay, and until when that is said.
func TestMake_old(t *testing.T) {
	var bases []keep.Base
	for i := range 900 { // two a day
		bases = append(bases, at(0, consensus.Index(i+1), float64(i)/2))
	}
	in := &keep.Input{Rule: keep.Rule{Window: 2 * day, Daily: 5, Weekly: 3, Monthly: 3, Yearly: 2}, Bases: bases, Now: begun + 1e12}
	p := keep.Make(in)
	for range 12 { // half of the bases go at a time
		in.Bases = nil
		for i := range p.Fates {
			if p.Fates[i].Kept {
				in.Bases = append(in.Bases, p.Fates[i].Base)
			}
		}
		p = keep.Make(in)
	}
	var got []string
	for i := range p.Fates {
		f := &p.Fates[i]
		until := "-"
		if f.Until > 0 {
			until = time.UnixMilli(f.Until).UTC().Format("2006-01-02")
		}
		got = append(got, fmt.Sprintf("%s %v %s %s", backup.Time(f.Time)[:13], f.Log, until, strings.Join(f.Why, ", ")))
	}
	want := []string{
		"2026-12-31T14 false 2028-01-01 the last of 2026",
		"2027-10-31T14 false 2028-01-01 the last of October 2027",
		"2027-11-30T14 false 2028-02-01 the last of November 2027",
		"2027-12-05T14 false 2027-12-20 the last of week 48 of 2027",
		"2027-12-11T14 false 2027-12-16 the last of 2027-12-11",
		"2027-12-12T14 true 2027-12-27 the last 2 days need it, the last of 2027-12-12, the last of week 49 of 2027",
		"2027-12-13T02 true 2027-12-15 the last 2 days need it",
		"2027-12-13T14 true 2027-12-18 the last 2 days need it, the last of 2027-12-13",
		"2027-12-14T02 true 2027-12-16 the last 2 days need it",
		"2027-12-14T14 true 2027-12-19 the last 2 days need it, the last of 2027-12-14",
		"2027-12-15T02 true 2029-01-01 the newest base, the last of 2027-12-15, the last of week 50 of 2027, " +
			"the last of December 2027, the last of 2027",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Ensure that after the volumes of all members were rolled back no base of the history that was given up takes the place of one of
// the history that goes on: what is in the window of either stays (that of entry 50 goes a round later), and without the word of
// members nothing goes.
func TestMake_rolledBack(t *testing.T) {
	var bases []keep.Base
	var known []kv.BackupBase
	add := func(index consensus.Index, day float64, reported bool) {
		b := at(0, index, day)
		b.Sum += uint64(day * 1000)
		b.Hash = backup.HashOf(fmt.Append(nil, index, day))
		if bases = append(bases, b); reported {
			known = append(known, kv.BackupBase{Index: uint64(index), Hash: b.Hash})
		}
	}
	for i := range 8 { // to entry 80; at day 8 all go back to entry 45, and the row with them
		add(consensus.Index(10*i+10), float64(i), i < 4)
	}
	for i := range 6 {
		add(consensus.Index(10*i+46), float64(i+8), true)
	}
	in := &keep.Input{Rule: keep.Rule{Window: 3 * day, Daily: 1}, Bases: bases, Now: begun + 1000*hour, Newest: 96, Known: known}
	p := keep.Make(in)
	if got := kept(p); !slices.Equal(got, []consensus.Index{50, 56, 60, 66, 70, 76, 80, 86, 96}) || p.Floor != 50 || p.Refused != "" {
		t.Errorf("got %v", describe(p))
	}
	in.Newest = 56 // the former history is longer still
	in.Bases = bases[:10]
	if p := keep.Make(in); len(kept(p)) != 10 || !strings.Contains(p.Refused, "somebody else writes") {
		t.Errorf("while the former history is longer: %v", describe(p))
	}
	in.Bases, in.Known, in.Newest = bases, nil, 0
	if p := keep.Make(in); len(kept(p)) != len(bases) || !strings.Contains(p.Refused, "Nothing is removed while both are there") {
		t.Errorf("nobody is known: %v", describe(p))
	}
}
