package census

import (
	"math"
	"slices"
	"sort"

	"github.com/quorate/quorate/internal/kv"
)

// interval holds the keys from its bound up to that of the next one.
type interval struct {
	bound  string
	count  int64       // keys that exist, after the last change applied
	last   kv.Revision // of the last change
	floor  kv.Revision // log has every change after it
	log    []mark      // in rising order
	weight int         // bound of the keys that have versions: those found, and those created since
	limit  int         // of weight: beyond it the interval is divided
}

// mark is one revision that changed the count.
type mark struct {
	revision kv.Revision
	before   int64 // the count before it
}

// Sizes in memory, for the bounds.
const (
	markBytes     = 16
	intervalBytes = 96
)

// unknown is the floor of an interval that was never counted: no revision reaches it.
const unknown = kv.MaxRevision

// noWeight is the weight of an interval that was never counted.
const noWeight = math.MaxInt / 2

func (v *interval) known() bool { return v.floor != unknown }

// at returns how many keys existed at a revision.
func (v *interval) at(rev kv.Revision) (count int64, known bool) {
	switch {
	case v.last <= rev:
		return v.count, true
	case rev < v.floor:
		return 0, false
	}
	i := sort.Search(len(v.log), func(i int) bool { return v.log[i].revision > rev })
	return v.log[i].before, true
}

// add applies a change. horizon is the oldest revision that may still be asked for.
func (v *interval) add(rev kv.Revision, born bool, horizon kv.Revision) {
	if n := len(v.log); n == 0 || v.log[n-1].revision != rev {
		if n == cap(v.log) {
			v.forget(min(horizon, rev-1))
		}
		v.log = append(v.log, mark{rev, v.count})
	}
	v.last = rev
	if !born {
		v.count--
		return
	}
	v.count++
	v.weight++
}

// forget drops the marks that only reads below horizon need.
func (v *interval) forget(horizon kv.Revision) {
	if v.floor >= horizon {
		return
	}
	v.floor = horizon
	drop := sort.Search(len(v.log), func(i int) bool { return v.log[i].revision > horizon })
	kept := v.log[drop:]
	if len(kept) > cap(v.log)/4 {
		v.log = v.log[:copy(v.log, kept)]
		return
	}
	v.log = append([]mark(nil), kept...)
}

// found is the part of a survey's span with the keys found in it.
type found struct {
	bound   string
	keys    int // that have versions
	rows    int
	count   int64
	floor   kv.Revision
	changes []change // after floor, in the order of keys
}

type change struct {
	revision kv.Revision
	born     bool
}

// join adds the next part, which begins where f ends.
func (f *found) join(next *found) {
	f.keys += next.keys
	f.rows += next.rows
	f.count += next.count
	f.floor = max(f.floor, next.floor)
	f.changes = append(f.changes, next.changes...)
}

// interval returns the interval of a part, with a log of its changes.
func (f *found) interval(limit int) interval {
	v := interval{bound: f.bound, count: f.count, last: f.floor, floor: f.floor, weight: f.keys, limit: limit}
	f.changes = slices.DeleteFunc(f.changes, func(c change) bool { return c.revision <= f.floor })
	if len(f.changes) == 0 {
		return v
	}
	slices.SortFunc(f.changes, func(a, b change) int { return int(a.revision - b.revision) })
	for _, c := range f.changes {
		if c.born {
			v.count--
		} else {
			v.count++
		}
	}
	weight := v.weight
	v.log = make([]mark, 0, len(f.changes))
	for _, c := range f.changes {
		v.add(c.revision, c.born, f.floor)
	}
	v.weight = weight
	return v
}
