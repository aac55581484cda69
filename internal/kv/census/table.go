package census

import (
	"slices"
	"sort"

	"github.com/quorate/quorate/internal/kv"
)

// table holds the intervals, sorted, and keeps them within their bounds.
type table struct {
	options   Options
	intervals []interval  // the bound of the first is the least key
	applied   kv.Revision // the last change that is in them
	horizon   kv.Revision // older revisions are forgotten
	hand      int         // the interval at which forget continues
	oldest    kv.Revision // the oldest mark in the intervals before hand

	logBytes, boundBytes int
}

// leastKey is below all others: keys are not empty.
const leastKey = "\x00"

// find returns the interval of a key.
func (t *table) find(key []byte) int {
	behind := sort.Search(len(t.intervals), func(i int) bool { return t.intervals[i].bound > string(key) })
	return max(behind-1, 0)
}

func (t *table) holds(i int, key []byte) bool {
	return i < len(t.intervals) && t.intervals[i].bound <= string(key) &&
		(i+1 == len(t.intervals) || string(key) < t.intervals[i+1].bound)
}

// upper is the bound of the next interval; last is true if there is none.
func (t *table) upper(i int) (bound string, last bool) {
	if i+1 < len(t.intervals) {
		return t.intervals[i+1].bound, false
	}
	return "", true
}

// replace puts made in place of interval i.
func (t *table) replace(i int, made []interval) {
	t.logBytes -= cap(t.intervals[i].log) * markBytes
	t.boundBytes -= len(t.intervals[i].bound)
	for k := range made {
		t.logBytes += cap(made[k].log) * markBytes
		t.boundBytes += len(made[k].bound)
	}
	t.intervals = slices.Replace(t.intervals, i, i+1, made...)
}

// fixedBytes is the memory of intervals without their logs.
func (t *table) fixedBytes() int { return len(t.intervals)*intervalBytes + t.boundBytes }

// forget visits at least visitsOfStep intervals, and visitsOfChange for each change that was applied: a few rounds while a
// quarter of the logs' room fills.
const (
	visitsOfStep   = 256
	visitsOfChange = 8
)

// forget drops the older half of the known past, until a quarter of the logs' room is free. It continues from call to call,
// visiting so many intervals in each; more only if there is no room at all.
func (t *table) forget(visits int) {
	for t.logBytes > t.options.LogBytes/4*3 && (visits > 0 || t.logBytes > t.options.LogBytes) {
		visits--
		if t.hand >= len(t.intervals) {
			if t.hand = 0; t.oldest > t.applied {
				t.oldest = kv.MaxRevision
				return
			}
			t.horizon = max(t.horizon, t.oldest+(t.applied-t.oldest)/2)
			t.oldest = kv.MaxRevision
		}
		v := &t.intervals[t.hand]
		t.hand++
		t.logBytes -= cap(v.log) * markBytes
		if v.known() {
			v.forget(t.horizon)
		}
		t.logBytes += cap(v.log) * markBytes
		if len(v.log) > 0 {
			t.oldest = min(t.oldest, v.log[0].revision)
		}
	}
}

// coarsen joins neighbours, and makes intervals longer where that does not free a quarter of the room. The past of joined
// intervals is forgotten.
func (t *table) coarsen() {
	for {
		t.join()
		if t.fixedBytes() <= t.options.IntervalBytes/4*3 || len(t.intervals) == 1 || t.options.Keys > noWeight/divideAt/2 {
			break
		}
		t.options.Keys *= 2
		for i := range t.intervals {
			t.intervals[i].limit = max(t.intervals[i].limit, divideAt*t.options.Keys)
		}
	}
}

// join makes one interval of each run of neighbours that have few keys together.
func (t *table) join() {
	kept := t.intervals[:1]
	for i := 1; i < len(t.intervals); i++ {
		v, into := &t.intervals[i], &kept[len(kept)-1]
		few := v.known() && into.known() && into.count+v.count <= int64(t.options.Keys) &&
			into.weight+v.weight <= divideAt*t.options.Keys
		if !few {
			kept = append(kept, *v)
			continue
		}
		t.logBytes -= (cap(into.log) + cap(v.log)) * markBytes
		t.boundBytes -= len(v.bound)
		into.count += v.count
		into.weight += v.weight
		into.log, into.last, into.floor = nil, t.applied, t.applied
	}
	clear(t.intervals[len(kept):])
	t.intervals = kept
}
