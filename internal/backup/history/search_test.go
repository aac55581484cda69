package history_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/history"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

const cluster, hour = 7, 3600_000

var seeds = flag.Int("seeds", 400, "places of TestSearch_walk")

// past are the entries of a history: entry i is at i-1.
type past []backup.Item

// grow returns a history with n entries more, of which the first one comes after a pause.
func (p past) grow(rng *rand.Rand, n int, pause int64) past {
	last := backup.Item{Time: 1_790_000_000_000, Revision: 1}
	if len(p) > 0 {
		last = p[len(p)-1]
	}
	last.Time += pause
	p = slices.Clone(p)
	for range n {
		last.Time, last.Revision, last.Sum = last.Time+int64(rng.Intn(1000)), last.Revision+kv.Revision(rng.Intn(2)), rng.Uint64()
		last.Entry = consensus.Entry{Index: consensus.Index(len(p) + 1), Term: 1, Kind: consensus.EntryCommand, Payload: []byte{1}}
		p = append(p, last)
	}
	return p
}

func (p past) head(i int) (h backup.Head) {
	if i > 0 {
		h = backup.Head{Point: backup.Point{Index: consensus.Index(i), Sum: p[i-1].Sum},
			Moment: backup.Moment{Revision: p[i-1].Revision, Time: p[i-1].Time}}
	}
	return h
}

// place has objects of histories.
type place struct {
	*testing.T
	at      *objectstest.Place
	packer  *backup.Packer
	catalog *backup.Catalog
	salt    byte
}

func newPlace(t *testing.T) *place {
	return &place{T: t, at: objectstest.NewPlace(1, time.Now), packer: backup.NewPacker(), catalog: &backup.Catalog{Cluster: cluster}}
}

// log puts a segment of the entries first to last, of another content each time.
func (p *place) log(of past, first, last int) backup.SegmentName {
	p.salt++
	before := of.head(first - 1)
	name, content := p.packer.Pack(&backup.Segment{Cluster: cluster, Member: 1, Before: before.Sum, RevisionBefore: before.Revision,
		Predecessor: backup.Hash{p.salt, 1}, Items: of[first-1 : last]})
	if err := errors.Join(p.at.Put(p.Context(), name.String(), bytes.NewReader(content), int64(len(content))),
		p.catalog.Add(name.String(), int64(len(content)))); err != nil {
		p.Fatal(err)
	}
	return name
}

// logs puts segments of so many entries each from one on to another one.
func (p *place) logs(of past, first, last, each int) {
	for ; first <= last; first += each {
		p.log(of, first, min(last, first+each-1))
	}
}

// packed is a state as names have it.
func (p *place) packed(h backup.Head) backup.Point {
	if p.packer.Lock == nil {
		return h.Point
	}
	return p.packer.Lock.Secret.Label(h.Point)
}

func (p *place) base(of past, at int) {
	p.salt++
	h := of.head(at)
	h.Set, h.Point = p.packer.Lock.Set(), p.packed(h)
	b := backup.BaseName{Cluster: cluster, Point: h.Point, Moment: h.Moment, Set: h.Set,
		Hash: backup.HashOf([]byte{p.salt})}
	if err := p.catalog.Add(b.String(), 1); err != nil {
		p.Fatal(err)
	}
}

func (p *place) search(target backup.Target) *history.Search {
	p.catalog.Sort()
	again := *p.catalog
	return &history.Search{Store: p.at, Catalog: &again, Target: target, OneHistory: true}
}

// Ensure that the latest state is not restored of a history that was given up, wherever what was shipped since lies: all volumes
// were rolled back to entry 100 of 500, and the cluster shipped little until it needs a restore.
func TestSearch_Plan_rolledBack(t *testing.T) {
	for name, fill := range map[string]func(p *place, old, new past){
		"below what retention left": func(p *place, old, new past) {
			p.base(old, 300)
			p.base(old, 400)
			p.logs(old, 301, 500, 10)
			p.base(new, 101)
			p.logs(new, 102, 160, 10)
		},
		"below a gap": func(p *place, old, new past) {
			p.base(old, 0)
			p.logs(old, 1, 150, 10)
			p.base(old, 180)
			p.logs(old, 181, 500, 10)
			p.logs(new, 101, 160, 10)
		},
		"below an overlap": func(p *place, old, new past) {
			p.base(old, 0)
			p.logs(old, 1, 210, 10)
			p.logs(old, 206, 500, 10)
			p.base(old, 400)
			p.logs(new, 101, 160, 10)
		},
		"a base alone, within the log": func(p *place, old, new past) {
			p.base(old, 50)
			p.logs(old, 51, 200, 10)
			p.base(new, 101)
		},
		"a base alone, where segments meet": func(p *place, old, new past) {
			p.base(old, 50)
			p.logs(old, 51, 200, 10)
			p.base(new, 110)
		},
		"a base alone, before the log": func(p *place, old, new past) {
			p.base(old, 120)
			p.logs(old, 121, 200, 10)
			p.base(new, 101)
		},
		"bases alone": func(p *place, old, new past) {
			p.base(old, 120)
			p.base(new, 101)
		},
	} {
		rng := rand.New(rand.NewSource(1))
		old := past{}.grow(rng, 500, 0)
		p := newPlace(t)
		new := old[:100].grow(rng, 60, 2*hour)
		fill(p, old, new)
		_, err := p.search(backup.Target{}).Plan(t.Context())
		if two, is := errors.AsType[*backup.HistoriesError](err); !is || two.Ends[1].Time < new[100].Time {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if ends, err := p.search(backup.Target{}).Ends(t.Context()); err != nil || len(ends) != 2 {
			t.Errorf("%s: histories end with %v, %v", name, ends, err)
		}
	}
}

// shipped puts a history as one or two members ship it, and leaves out a part, as retention, a gap or a person does.
func (p *place) shipped(rng *rand.Rand, of past, first int) {
	floor, gap, until := 0, 0, 0
	if rng.Intn(2) == 0 {
		floor = rng.Intn(len(of))
	}
	if rng.Intn(2) == 0 {
		gap = first + rng.Intn(len(of)-first+1)
		until = gap + rng.Intn(20)
	}
	for range 1 + rng.Intn(2) {
		for from := first + rng.Intn(5); from <= len(of); {
			last := min(len(of), from+rng.Intn(8))
			if last > floor && (last <= gap || from >= until) && rng.Intn(30) > 0 {
				p.log(of, from, last)
			}
			from = last + 1
		}
	}
	for range rng.Intn(4) {
		if at := first + rng.Intn(len(of)-first+1); at >= floor || rng.Intn(2) == 0 {
			p.base(of, at)
		}
	}
}

// Ensure that a place with one history needs no name of it, whatever is missing, and that the latest state of a history that was given
// up is restored from none that has anything of the one that was shipped since.
func TestSearch_walk(t *testing.T) {
	refused, restored := 0, 0
	for seed := range int64(*seeds) {
		rng := rand.New(rand.NewSource(seed))
		p := newPlace(t)
		old := past{}.grow(rng, 20+rng.Intn(60), 0)
		p.shipped(rng, old, 1)
		fork, went := len(old), past(nil)
		if seed%3 > 0 {
			fork = 1 + rng.Intn(len(old)-1)
			went = old[:fork].grow(rng, 1+rng.Intn(30), 2*hour)
			p.shipped(rng, went, 1+rng.Intn(fork))
		}
		has := func(of past) bool {
			of2 := func(h backup.Point) bool {
				return int(h.Index) > fork && int(h.Index) <= len(of) && of[h.Index-1].Sum == h.Sum
			}
			return slices.ContainsFunc(p.catalog.Segments, func(s backup.Stored) bool { return of2(s.End) }) ||
				slices.ContainsFunc(p.catalog.Bases, func(b backup.Base) bool { return of2(b.Point) })
		}
		plan, err := p.search(backup.Target{}).Plan(t.Context())
		_, two := errors.AsType[*backup.HistoriesError](err)
		ends, listing := p.search(backup.Target{}).Ends(t.Context())
		if listing != nil {
			t.Fatal(listing)
		}
		switch both := went != nil && has(old) && has(went); {
		case two && !both:
			t.Fatalf("seed %d: one history, and %v", seed, err)
		case !both && len(ends) > 1:
			t.Fatalf("seed %d: one history ends with %v", seed, ends)
		case two && len(ends) < 2:
			t.Fatalf("seed %d: %v, and histories end with %v", seed, err, ends)
		case two:
			refused++
		case err == nil && both && int(plan.End.Index) <= len(old) && old[plan.End.Index-1].Sum == plan.End.Sum:
			t.Fatalf("seed %d: %v of the history that was given up at %d", seed, plan.End, fork)
		case err == nil:
			restored++
		}
	}
	if refused < *seeds/20 || restored < *seeds/20 {
		t.Errorf("%d refused, %d restored", refused, restored)
	}
}

// Ensure that damage of a segment that another member, or the same one again, has shipped too makes no second history.
func TestSearch_Plan_damagedTwin(t *testing.T) {
	old := past{}.grow(rand.New(rand.NewSource(1)), 100, 0)
	for name, spoil := range map[string]func(p *place, s *backup.SegmentName){
		"changed": func(p *place, s *backup.SegmentName) { p.at.Flip(s.String(), 100) },
		"removed": func(p *place, s *backup.SegmentName) { p.at.Remove(s.String()) },
	} {
		for n := range 2 {
			p := newPlace(t)
			p.base(old, 0)
			p.logs(old, 1, 40, 10)
			twins := [2]backup.SegmentName{p.log(old, 41, 50), p.log(old, 41, 50)}
			p.log(old, 36, 45) // of a member that ended there
			p.logs(old, 51, 100, 10)
			spoil(p, &twins[n])
			search := p.search(backup.Target{})
			if plan, err := search.Plan(t.Context()); err != nil || plan.End.Index != 100 || slices.ContainsFunc(plan.Segments,
				func(s backup.Stored) bool { return s.Hash == twins[n].Hash }) && len(search.Found()) > 0 {
				t.Errorf("%s, twin %d: %v", name, n, err)
			}
			if ends, err := p.search(backup.Target{}).Ends(t.Context()); err != nil || len(ends) != 1 {
				t.Errorf("%s, twin %d: histories end with %v, %v", name, n, ends, err)
			}
			p.at.Remove(twins[0].String())
			p.at.Remove(twins[1].String())
			if _, err := p.search(backup.Target{Index: 100}).Plan(t.Context()); err == nil {
				t.Errorf("%s: planned without either twin", name)
			}
		}
	}
}

// Ensure that a history that is chosen by name has all segments of it, as many as overlap, and says where it looked no further.
func TestCatalog_History_whole(t *testing.T) {
	old := past{}.grow(rand.New(rand.NewSource(1)), 1000, 0)
	p := newPlace(t)
	p.base(old, 0)
	for range 2 {
		p.logs(old, 1, 100, 10)
	}
	p.catalog.Sort()
	c, err := p.catalog.History(old.head(100).Point)
	if err != nil || len(c.Segments) != 20 {
		t.Fatalf("%d segments, %v", len(c.Segments), err)
	}
	bad := map[backup.Hash]bool{c.Segments[4].Hash: true, c.Segments[7].Hash: true}
	if plan, err := c.Plan(backup.Target{}, func(h backup.Hash) bool { return bad[h] }); err != nil || plan.End.Index != 100 {
		t.Errorf("%v", err)
	}
	for overlaps, say := range map[int]bool{60: false, 70: true} {
		p := newPlace(t)
		p.base(old, 0)
		for i := range overlaps {
			p.log(old, max(1, 10*i-1), 10*i+10)
		}
		p.catalog.Sort()
		c, err := p.catalog.History(old.head(10 * overlaps).Point)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Plan(backup.Target{}, func(backup.Hash) bool { return false })
		if say != (err != nil) || say && !bytes.Contains(fmt.Append(nil, err), []byte("64 overlaps of segments")) {
			t.Errorf("%d overlaps: %v", overlaps, err)
		}
	}
}

// Ensure that a history that was chosen and begins with a base, within a segment of the one that was given up, has no rival there.
func TestSearch_Rivals_baseWithin(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	old := past{}.grow(rng, 130, 0)
	went := old[:100].grow(rng, 40, 2*hour)
	p := newPlace(t)
	p.base(old, 0)
	p.logs(old, 1, 90, 10)
	p.logs(old, 91, 130, 20)
	p.base(went, 105)
	p.logs(went, 106, 140, 15)
	p.catalog.Sort()
	for _, end := range []int{120, 135, 140} {
		c, err := p.catalog.History(went.head(end).Point)
		if err != nil {
			t.Fatal(err)
		}
		s := &history.Search{Store: p.at, Catalog: c, Target: backup.Target{Index: 108}, OneHistory: true}
		for round, again := 0, true; again; round++ {
			plan, err := s.Plan(t.Context())
			if err != nil || plan.Base.Index != 105 || round > 3 {
				t.Fatalf("of %d, round %d: %v", end, round, err)
			}
			var rivals []history.Rival
			if rivals, again, err = s.Rivals(t.Context(), plan); err != nil || !again && len(rivals) > 0 {
				t.Fatalf("of %d, round %d: %v, %v", end, round, rivals, err)
			}
		}
	}
}

// Ensure that a restore reads each of many made-up segments beside its state once, and refuses more than it compares.
func TestSearch_Rivals_many(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	old := past{}.grow(rng, 20, 0)
	p := newPlace(t)
	p.base(old, 0)
	p.logs(old, 1, 20, 10)
	for _, many := range []int{20, backup.MaxStrays + 1} { // the place keeps those of the first round
		want := many == 20
		for range many {
			made := old[:4].grow(rng, 1, 0)
			p.log(made, 2, 5)
		}
		p.catalog.Sort()
		store := &reads{Store: p.at}
		s := &history.Search{Store: store, Catalog: p.catalog, Target: backup.Target{Index: 5}}
		plan, err := s.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			rivals, _, err := s.Rivals(t.Context(), plan)
			if (err == nil) != want || want && (len(rivals) != many || store.count > many+3) {
				t.Errorf("%d rivals of %d, %d objects were read: %v", len(rivals), many, store.count, err)
			}
		}
	}
}
