package heavy

import (
	"cmp"
	"math"
	"slices"
)

// Kinds is how many weights an item has.
const Kinds = 3

// Weights are what an item weighs, by kind.
type Weights [Kinds]uint64

// Plus adds weights. A sum stays at the largest number.
func (w Weights) Plus(more Weights) Weights {
	for i := range w {
		w[i] = plus(w[i], more[i])
	}
	return w
}

// Times multiplies weights.
func (w Weights) Times(n uint64) Weights {
	for i := range w {
		if n > 0 && w[i] > math.MaxUint64/n {
			w[i] = math.MaxUint64
		} else {
			w[i] *= n
		}
	}
	return w
}

func plus(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// Item is what a sketch knows of an item.
type Item struct {
	Key   string
	Tally Weights // that were counted for it: at least so much
	Most  uint64  // the most that it may weigh, of the kind by which the sketch ranks
}

// Sketch holds the heaviest items by one kind of their weights. Use New.
type Sketch struct {
	by      int
	counts  []uint64 // apart from the rest, since the least one is looked for
	items   []counted
	at      map[string]int
	total   Weights
	missing uint64 // the most that any item may weigh beyond its count, of sketches that were folded in
}

// counted is the item of a counter.
type counted struct {
	key   string
	tally Weights
}

// New returns an empty sketch with so many counters, which ranks by one kind of weight.
func New(counters, by int) *Sketch {
	return &Sketch{by: by, counts: make([]uint64, 0, counters), items: make([]counted, 0, counters),
		at: make(map[string]int, counters)}
}

// Bytes is about how much a sketch takes, without the keys of its items.
func Bytes(counters int) int {
	const counter, place, fixed = 8 + 16 + 8*Kinds, 48, 256
	return fixed + counters*(counter+place)
}

// Add counts an item. It copies key.
func (s *Sketch) Add(key []byte, w Weights) {
	s.total = s.total.Plus(w)
	if w[s.by] == 0 {
		return // it may take no counter from another item
	}
	if i, known := s.at[string(key)]; known {
		s.count(i, w, w[s.by])
		return
	}
	s.enter(string(key), w, w[s.by])
}

// AddItem counts what another sketch, which ranks by the same kind and has this floor, knows of an item. AddRest completes it.
func (s *Sketch) AddItem(item Item, floor uint64) {
	// The floor is added for every item, by AddRest. An item that weighs no more takes no counter from another one.
	beside := max(item.Most, floor) - floor
	if i, known := s.at[item.Key]; known {
		s.count(i, item.Tally, beside)
	} else if beside > 0 || len(s.items) < cap(s.items) {
		s.enter(item.Key, item.Tally, beside)
	}
}

// AddRest ends the addition of the items of another sketch: what it counted in all, and its floor.
func (s *Sketch) AddRest(total Weights, floor uint64) {
	s.total = s.total.Plus(total)
	s.missing = plus(s.missing, floor)
}

// Fold adds what another sketch knows.
func (s *Sketch) Fold(other *Sketch) {
	floor := other.Floor()
	for i := range other.items {
		s.AddItem(other.item(i), floor)
	}
	s.AddRest(other.total, floor)
}

func (s *Sketch) count(i int, w Weights, count uint64) {
	s.counts[i] = plus(s.counts[i], count)
	s.items[i].tally = s.items[i].tally.Plus(w)
}

// enter gives an item a counter: a free one, or the least one with its count.
func (s *Sketch) enter(key string, w Weights, count uint64) {
	if len(s.items) < cap(s.items) {
		s.at[key] = len(s.items)
		s.items = append(s.items, counted{key, w})
		s.counts = append(s.counts, count)
		return
	}
	i := s.least()
	delete(s.at, s.items[i].key)
	s.at[key] = i
	s.items[i] = counted{key, w}
	s.counts[i] = plus(s.counts[i], count)
}

func (s *Sketch) least() (at int) {
	least := s.counts[0]
	for i, n := range s.counts {
		if n < least {
			at, least = i, n
		}
	}
	return at
}

// Floor is the most that an item may weigh that has no counter.
func (s *Sketch) Floor() uint64 {
	if len(s.items) < cap(s.items) {
		return s.missing
	}
	return plus(s.missing, s.counts[s.least()])
}

// Total is what was counted in all.
func (s *Sketch) Total() Weights { return s.total }

func (s *Sketch) item(i int) Item {
	return Item{Key: s.items[i].key, Tally: s.items[i].tally, Most: plus(s.counts[i], s.missing)}
}

// Heaviest returns so many items of which most was counted, these first, and of those alike in the order of their keys; and the
// most that any other item may weigh.
func (s *Sketch) Heaviest(n int) (heaviest []Item, floor uint64) {
	all := make([]Item, len(s.items))
	for i := range s.items {
		all[i] = s.item(i)
	}
	slices.SortFunc(all, func(a, b Item) int {
		return cmp.Or(cmp.Compare(b.Tally[s.by], a.Tally[s.by]), cmp.Compare(a.Key, b.Key))
	})
	n, floor = min(n, len(all)), s.Floor()
	for _, left := range all[n:] {
		floor = max(floor, left.Most)
	}
	return all[:n:n], floor
}

// Reset empties the sketch.
func (s *Sketch) Reset() {
	clear(s.at)
	clear(s.items) // their keys
	s.counts, s.items, s.total, s.missing = s.counts[:0], s.items[:0], Weights{}, 0
}
