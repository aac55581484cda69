package history_test

import (
	"context"
	"io"
	"math/rand"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/history"
	"github.com/quorate/quorate/internal/storage/objects"
)

// reads counts the objects that are read.
type reads struct {
	objects.Store
	count int
}

func (r *reads) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	r.count++
	return r.Store.Get(ctx, name, offset, length)
}

// sealed lets a place take objects that are encrypted, to nobody.
func (p *place) sealed() {
	p.packer.Lock = &backup.Lock{Secret: backup.Secret{1}, Seal: func(content []byte) []byte { return content }}
}

func opened(sealed []byte, _ int64) ([]byte, error) { return sealed, nil }

// forgedWithin puts segments of which each agrees with a history up to an entry, and ends behind that, before another one.
func (p *place) forgedWithin(rng *rand.Rand, of past, many, first, agree, last int) {
	for range many {
		until := agree + rng.Intn(last-agree)
		p.log(of[:until].grow(rng, 1+rng.Intn(last-until), 0), first, len(of[:until])+1)
	}
}

// Ensure that segments which somebody made up, and which end within a true one, let no plan leave out that one: it also goes
// through states below those, or through the base. However many they are, few objects are read.
func TestSearch_Plan_endsWithin(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	old := past{}.grow(rng, 200, 0)
	for name, fill := range map[string]func(p *place, many int) (base int){
		"behind a segment": func(p *place, many int) int {
			p.base(old, 0)
			p.logs(old, 1, 100, 10)
			p.log(old, 97, 110)
			p.logs(old, 111, 200, 10)
			p.forgedWithin(rng, old, many, 91, 100, 109)
			return 0
		},
		"at the end of a segment": func(p *place, many int) int {
			p.base(old, 0)
			p.logs(old, 1, 100, 10)
			p.log(old, 97, 110)
			p.logs(old, 111, 200, 10)
			p.forgedWithin(rng, old, many, 91, 97, 100)
			return 0
		},
		"behind a base": func(p *place, many int) int {
			p.base(old, 0)
			p.base(old, 105)
			p.logs(old, 101, 200, 10)
			p.forgedWithin(rng, old, many, 101, 105, 109)
			return 105
		},
		"behind a segment, and others of another member go past it": func(p *place, many int) int {
			p.base(old, 0)
			p.logs(old, 1, 90, 10)
			p.log(old, 85, 115)
			p.log(old, 97, 110) // nothing that is left leads there
			p.logs(old, 111, 200, 10)
			p.forgedWithin(rng, old, many, 91, 97, 109)
			return 0
		},
	} {
		for _, seals := range []bool{false, true} {
			many := 100
			if seals {
				if many = 5; name == "behind a base" { // nobody but the members knows the sum of an encrypted base
					continue
				}
			}
			p := newPlace(t)
			if seals {
				p.sealed()
			}
			base := fill(p, many)
			p.catalog.Sort()
			newest, _ := p.catalog.Newest()
			chosen, err := p.catalog.History(newest.Point)
			if err != nil {
				t.Fatal(err)
			}
			store := &reads{Store: p.at}
			s := &history.Search{Store: store, Open: opened, Catalog: chosen, OneHistory: true}
			plan, err := s.Plan(t.Context())
			if err != nil || plan.End.Index != 200 || int(plan.Base.Index) != base {
				t.Errorf("%s, encrypted %v: %v", name, seals, err)
			} else if most := 10 + 4*many; seals && store.count > most || !seals && store.count > 10 {
				t.Errorf("%s, encrypted %v: %d objects were read", name, seals, store.count)
			}
		}
	}
}

// Ensure that a plan finds the true state within a segment below more names of true states than are noted at once, of which none is
// an object.
func TestSearch_Plan_manyEnds(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	old := past{}.grow(rng, 500, 0)
	p := newPlace(t)
	p.base(old, 0)
	p.logs(old, 1, 100, 10)
	p.log(old, 97, 490)
	p.logs(old, 491, 500, 10)
	p.forgedWithin(rng, old, 3, 91, 470, 480)
	for end := 150; end < 450; end++ {
		n := backup.SegmentName{Cluster: cluster, First: 91, Before: rng.Uint64(), End: old.head(end).Point, Moment: old.head(end).Moment,
			Hash: backup.HashOf([]byte{byte(end), byte(end >> 8)})}
		if err := p.catalog.Add(n.String(), 1); err != nil {
			t.Fatal(err)
		}
	}
	p.catalog.Sort()
	chosen, err := p.catalog.History(old.head(500).Point)
	if err != nil {
		t.Fatal(err)
	}
	store := &reads{Store: p.at}
	plan, err := (&history.Search{Store: store, Catalog: chosen, OneHistory: true}).Plan(t.Context())
	if err != nil || plan.End.Index != 500 || store.count > 320*2 {
		t.Errorf("%d objects were read: %v", store.count, err)
	}
}

// Ensure that made-up segments let no state be lost that a place has without them, wherever they begin and end.
func TestSearch_walk_endsWithin(t *testing.T) {
	planned := 0
	for seed := range int64(*seeds) {
		rng := rand.New(rand.NewSource(seed))
		p := newPlace(t)
		if seed%4 == 0 {
			p.sealed()
		}
		old := past{}.grow(rng, 20+rng.Intn(40), 0)
		p.base(old, 0)
		p.shipped(rng, old, 1)
		p.log(old, len(old)-rng.Intn(4), len(old))
		if seed%4 == 0 {
			p.catalog.Bases = p.catalog.Bases[:1] // the others would be read
		}
		search := func() *history.Search {
			p.catalog.Sort()
			c, err := p.catalog.History(p.packed(old.head(len(old))))
			if err != nil {
				t.Fatal(err)
			}
			return &history.Search{Store: p.at, Open: opened, Catalog: c, OneHistory: true}
		}
		want, err := search().Plan(t.Context())
		if err != nil {
			continue
		}
		planned++
		for range 1 + rng.Intn(20) {
			first := 1 + rng.Intn(len(old)-3)
			agree := first + rng.Intn(len(old)-first-1)
			p.forgedWithin(rng, old, 1, first, agree, len(old)-1)
		}
		got, err := search().Plan(t.Context())
		if err != nil {
			t.Fatalf("seed %d: base %d: %v", seed, want.Base.Index, err)
		}
		if got.End.Point != want.End.Point || got.Base.Index < want.Base.Index {
			t.Fatalf("seed %d: got %v from entry %d, want %v from entry %d", seed, got.End, got.Base.Index, want.End, want.Base.Index)
		}
	}
	if planned < *seeds/10 {
		t.Errorf("%d plans", planned)
	}
}
