package census_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/census"
)

// world is a store of keys without values, and its census.
type world struct {
	t        *testing.T
	r        *rand.Rand
	least    int // the fewest keys that a walk visits, unless it comes to the end
	census   *census.Census
	versions map[string][]census.Version // newest first
	revision kv.Revision
	compact  kv.Revision
	survey   *census.Survey
	seen     map[string][]census.Version // the keys that an iterator of the survey sees
}

func (w *world) key() string {
	key := make([]byte, 1+w.r.IntN(3))
	for i := range key {
		key[i] = []byte{0, 1, 'a', 'b', 0xff}[w.r.IntN(5)]
	}
	return string(key)
}

func live(versions []census.Version, rev kv.Revision) bool {
	for _, v := range versions {
		if v.Revision <= rev {
			return v.Live
		}
	}
	return false
}

// change creates or deletes keys. Puts to existing keys are not passed to the census.
func (w *world) change() {
	var changes []census.Change
	for range w.r.IntN(5) {
		w.revision++
		for range 1 + w.r.IntN(3) {
			key, to := w.key(), w.r.IntN(5) > 1
			was := live(w.versions[key], w.revision)
			if !was && !to {
				continue
			}
			w.versions[key] = slices.Insert(w.versions[key], 0, census.Version{Revision: w.revision, Live: to})
			if was != to {
				changes = append(changes, census.Change{Key: []byte(key), Revision: w.revision, Born: to})
			}
		}
	}
	if w.r.IntN(40) == 0 {
		w.compact += kv.Revision(w.r.Int64N(int64(w.revision-w.compact) + 1))
	}
	w.census.Apply(changes, w.revision, w.compact)
}

// drop deletes versions that no read may see any more.
func (w *world) drop() {
	for key, versions := range w.versions {
		for i, v := range versions {
			if v.Revision > w.compact {
				continue
			}
			kept := versions[:i+1]
			if !v.Live && v.Revision < w.compact {
				kept = versions[:i]
			}
			if w.versions[key] = slices.Clone(kept); len(kept) == 0 {
				delete(w.versions, key)
			}
			break
		}
	}
}

// divide makes the next step of a survey: it begins or ends one, with changes in between.
func (w *world) divide() {
	if w.survey == nil {
		if w.survey, _ = w.census.Begin(); w.survey != nil {
			w.seen = map[string][]census.Version{}
			for key, versions := range w.versions {
				w.seen[key] = slices.Clone(versions)
			}
			w.survey.Floor = w.compact
		}
		return
	}
	if w.survey.Floor > w.survey.Revision || w.r.IntN(10) == 0 {
		w.census.Drop(w.survey)
		w.survey = nil
		return
	}
	w.census.Finish(w.survey, w.walk())
	w.survey = nil
}

func (w *world) walk() (end bool) {
	s := w.survey
	var keys []string
	for key := range w.seen {
		if within(key, string(s.Span.Key), string(s.Span.End)) {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	stop := w.least + w.r.IntN(len(keys)+20)
	for i, key := range keys {
		if i == stop {
			return false
		}
		var versions []census.Version
		whole := true
		for _, v := range w.seen[key] {
			if v.Revision > s.Revision {
				continue
			}
			if len(versions) == 4 {
				whole = false
				break
			}
			versions = append(versions, v)
			if v.Revision <= s.Floor {
				break
			}
		}
		if s.Add([]byte(key), versions, whole) {
			return false
		}
	}
	return true
}

func within(key, from, to string) bool { return key >= from && (to == "\x00" || key < to) }

func (w *world) count(from, to string, rev kv.Revision) (n int64) {
	for key, versions := range w.versions {
		if within(key, from, to) && live(versions, rev) {
			n++
		}
	}
	return n
}

func (w *world) look() {
	w.t.Helper()
	from, to, rev := w.key(), w.key(), w.compact+kv.Revision(w.r.Int64N(int64(w.revision-w.compact)+1))
	if w.r.IntN(4) == 0 {
		to = "\x00"
	}
	if to != "\x00" && to <= from {
		return
	}
	got, walk := w.census.Count([]byte(from), []byte(to), rev)
	for _, part := range walk {
		got += w.count(string(part.Key), string(part.End), rev)
	}
	if want := w.count(from, to, rev); got != want {
		w.t.Fatalf("%q to %q at revision %d of %d, compacted %d: got %d, want %d", from, to, rev, w.revision, w.compact, got, want)
	}
}

// Every count equals that of a list of all changes: while intervals are divided and joined, changes come between the beginning
// and the end of a survey, and the past is forgotten.
func TestCensus_againstList(t *testing.T) {
	for _, o := range []census.Options{
		{Keys: 1}, {Keys: 2}, {Keys: 5}, {Keys: 1, LogBytes: 200, IntervalBytes: 1 << 20}, {Keys: 1, IntervalBytes: 1000},
	} {
		seeds := uint64(10)
		if testing.Short() {
			seeds = 4
		}
		for seed := range seeds {
			t.Run(fmt.Sprintf("%+v/seed=%d", o, seed), func(t *testing.T) {
				w := &world{
					t: t, r: rand.New(rand.NewPCG(seed, 5)), least: o.Keys + 1, census: census.New(seed%2 == 0, 1, o), revision: 1,
					versions: map[string][]census.Version{},
				}
				if seed%2 == 1 {
					w.versions["a"] = []census.Version{{Revision: 1, Live: true}}
				}
				if o.IntervalBytes > 0 {
					w.least = 1000 // intervals get longer
				}
				for range 600 {
					w.change()
					if w.r.IntN(2) == 0 {
						w.divide()
					}
					if w.r.IntN(10) == 0 {
						w.drop()
					}
					for range 3 {
						w.look()
					}
				}
				w.settle(o)
			})
		}
	}
}

// settle divides all due intervals: then all counts are known, within the bounds on memory.
func (w *world) settle(o census.Options) {
	w.t.Helper()
	for range 10_000 {
		if w.divide(); w.survey == nil && !w.census.Due() {
			break
		}
	}
	got := w.census.Stats()
	if w.census.Due() || got.Unknown > 0 || got.Corrected > 0 {
		w.t.Errorf("after all surveys: due %t, %+v", w.census.Due(), got)
	}
	if most := o.LogBytes + o.IntervalBytes; o.LogBytes > 0 && got.Bytes > most {
		w.t.Errorf("takes %d bytes, want at most %d", got.Bytes, most)
	}
	if _, walk := w.census.Count([]byte{0}, []byte{0}, w.revision); len(walk) > 0 {
		w.t.Errorf("all keys are counted, but for %q", walk)
	}
	w.look()
}
