package heavy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/heavy"
)

// stream draws items of a Zipf distribution, or such that few come twice.
type stream struct {
	items *rand.Zipf
	spray bool
	drawn uint64
	r     *rand.Rand
}

func newStream(seed uint64, skew float64, spray bool) *stream {
	r := rand.New(rand.NewPCG(seed, 1))
	return &stream{items: rand.NewZipf(r, skew, 1, 1<<20), r: r, spray: spray}
}

func (s *stream) next() (key string, w heavy.Weights) {
	s.drawn++
	if s.spray && s.drawn%4 != 0 {
		return fmt.Sprint("spray", s.drawn), heavy.Weights{1, 1 + s.r.Uint64N(4000), 5}
	}
	n := s.items.Uint64()
	return fmt.Sprint("item", n), heavy.Weights{1, 100 + n%7*s.r.Uint64N(1000), s.r.Uint64N(9)}
}

// judge compares a sketch with what was drawn, of an error that may be so large.
func judge(t *testing.T, name string, s *heavy.Sketch, by int, real map[string]heavy.Weights, most uint64) {
	t.Helper()
	var total heavy.Weights
	for _, w := range real {
		total = total.Plus(w)
	}
	if s.Total() != total {
		t.Errorf("%s: the total is %v, want %v", name, s.Total(), total)
	}
	known := map[string]bool{}
	items, floor := s.Heaviest(math.MaxInt)
	for i, item := range items {
		known[item.Key] = true
		w := real[item.Key]
		if item.Tally[by] > w[by] || w[by] > item.Most || item.Most-item.Tally[by] > most {
			t.Errorf("%s: %s weighs %d: counted %d, at most %d; the error may be %d", name, item.Key, w[by], item.Tally[by],
				item.Most, most)
		}
		for kind := range w {
			if item.Tally[kind] > w[kind] {
				t.Errorf("%s: %s weighs %v, counted %v", name, item.Key, w, item.Tally)
			}
		}
		if i > 0 && item.Tally[by] > items[i-1].Tally[by] {
			t.Errorf("%s: %s stands behind a lighter one", name, item.Key)
		}
	}
	if floor > most {
		t.Errorf("%s: the floor is %d, at most %d is promised", name, floor, most)
	}
	for key, w := range real {
		if w[by] > floor && !known[key] {
			t.Errorf("%s: %s weighs %d and is missing, the floor is %d", name, key, w[by], floor)
		}
	}
}

// Ensure that the heaviest items of a stream are known within the bound, also beside a million that come once.
func TestSketch_Add_bounds(t *testing.T) {
	const counters, drawn = 64, 20_000
	for by := range heavy.Kinds {
		for seed := range uint64(4) {
			for _, spray := range []bool{false, true} {
				s, real := heavy.New(counters, by), map[string]heavy.Weights{}
				source := newStream(seed, 1.1+float64(seed)/4, spray)
				for range drawn {
					key, w := source.next()
					s.Add([]byte(key), w)
					real[key] = real[key].Plus(w)
				}
				judge(t, fmt.Sprintf("by %d, seed %d, spray %t", by, seed, spray), s, by, real, s.Total()[by]/counters)
			}
		}
	}
}

// Ensure that the bound of sketches that were folded, twice over, is the sum of theirs.
func TestSketch_Fold_bounds(t *testing.T) {
	const counters, drawn, parts = 64, 3000, 6
	for seed := range uint64(4) {
		real, floors := map[string]heavy.Weights{}, uint64(0)
		half := [2]*heavy.Sketch{heavy.New(counters, 1), heavy.New(counters, 1)}
		source := newStream(seed, 1.3, seed%2 == 1)
		for part := range parts {
			s := heavy.New(counters, 1)
			for range drawn {
				key, w := source.next()
				s.Add([]byte(key), w)
				real[key] = real[key].Plus(w)
			}
			floors += s.Floor()
			half[part%2].Fold(s)
		}
		whole := heavy.New(2*counters, 1)
		for _, h := range half {
			if h.Floor() > floors+h.Total()[1]/counters {
				t.Errorf("seed %d: the floor of a half is %d", seed, h.Floor())
			}
			whole.Fold(h)
		}
		judge(t, fmt.Sprint("seed ", seed), whole, 1, real, floors+whole.Total()[1]/counters)
	}
}

// Ensure that a sketch which is sent in part, and is added elsewhere, keeps the bounds: what was left out is in the floor.
func TestSketch_Heaviest_cut(t *testing.T) {
	real, merged := map[string]heavy.Weights{}, heavy.New(64, 0)
	for seed := range uint64(3) {
		s, source := heavy.New(32, 0), newStream(seed, 1.2, seed == 2)
		for range 5000 {
			key, w := source.next()
			s.Add([]byte(key), w)
			real[key] = real[key].Plus(w)
		}
		items, floor := s.Heaviest(8)
		if len(items) != 8 {
			t.Fatalf("%d items", len(items))
		}
		for _, item := range items {
			merged.AddItem(item, floor)
		}
		merged.AddRest(s.Total(), floor)
	}
	judge(t, "merged", merged, 0, real, merged.Floor())
}

// Ensure that an empty sketch is as a new one, and that weights which are too large for a number stay at the largest.
func TestSketch_Reset(t *testing.T) {
	s := heavy.New(2, 0)
	for range 3 {
		s.Add([]byte("a"), heavy.Weights{math.MaxUint64, 1, 2}.Times(3))
	}
	items, _ := s.Heaviest(9)
	if len(items) != 1 || items[0].Tally != (heavy.Weights{math.MaxUint64, 9, 18}) || items[0].Most != math.MaxUint64 {
		t.Errorf("of large weights: %v", items)
	}
	s.Reset()
	items, floor := s.Heaviest(9)
	if len(items) != 0 || floor != 0 || s.Total() != (heavy.Weights{}) {
		t.Errorf("after Reset: %v, floor %d, total %v", items, floor, s.Total())
	}
	s.Add([]byte("b"), heavy.Weights{0, 7, 7}) // weighs nothing here
	s.Add([]byte("c"), heavy.Weights{4, 7, 7})
	if items, floor := s.Heaviest(9); len(items) != 1 || items[0].Key != "c" || items[0].Most != 4 || floor != 0 {
		t.Errorf("after Reset: %v, floor %d", items, floor)
	}
}

// Ensure that an addition allocates nothing for an item that is known, and only its key for one that is not.
func TestSketch_Add_allocations(t *testing.T) {
	s := heavy.New(64, 0)
	key := []byte(strings.Repeat("k", 64))
	known := testing.AllocsPerRun(1000, func() { s.Add(key, heavy.Weights{1, 1, 1}) })
	n := 0
	sprayed := testing.AllocsPerRun(100_000, func() {
		n++
		for i, at := n, 0; at < 8; i, at = i/10, at+1 {
			key[at] = byte('0' + i%10)
		}
		s.Add(key, heavy.Weights{1, 1, 1})
	})
	if known > 0 || sprayed > 1 {
		t.Errorf("%v allocations for a known item, %v for others", known, sprayed)
	}
}

// BenchmarkSketch_Add is the cost of an addition: of items that are known, and of ones that never are.
func BenchmarkSketch_Add(b *testing.B) {
	for _, counters := range []int{64, 256} {
		b.Run(fmt.Sprintf("known/%d", counters), func(b *testing.B) {
			s, key := heavy.New(counters, 1), []byte("p/registry/pods/default/")
			b.ReportAllocs()
			for b.Loop() {
				s.Add(key, heavy.Weights{1, 256, 9000})
			}
		})
		b.Run(fmt.Sprintf("spray/%d", counters), func(b *testing.B) {
			s, key := heavy.New(counters, 1), []byte("p/registry/pods/default/")
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n++ {
				for i, at := n, 1; at < 10; i, at = i>>7, at+1 {
					key[at] = byte(i & 127)
				}
				s.Add(key, heavy.Weights{1, 256, 9000})
			}
		})
	}
}
