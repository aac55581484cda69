package census

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/kv"
)

// Census counts keys by interval.
type Census struct {
	mu        sync.Mutex
	table     table
	hint      int     // the interval of the last change
	survey    *Survey // under way
	next      int     // where Begin starts its search
	corrected int64   // intervals whose count differed from the survey's: only after faults

	due atomic.Bool // an interval may need to be divided
}

// New returns the census of a store at a revision. Only of an empty store does it know the count at once.
func New(empty bool, at kv.Revision, options Options) *Census {
	if options.Keys <= 0 {
		options.Keys = DefaultKeys
	}
	if options.LogBytes <= 0 {
		options.LogBytes = DefaultLogBytes
	}
	if options.IntervalBytes <= 0 {
		options.IntervalBytes = DefaultIntervalBytes
	}
	c := &Census{}
	all := interval{bound: leastKey, last: at, floor: at, limit: divideAt * options.Keys}
	if !empty {
		all.last, all.floor, all.weight = unknown, unknown, noWeight
		c.due.Store(true)
	}
	c.table = table{options: options, applied: at, oldest: kv.MaxRevision, intervals: []interval{all}}
	return c
}

// Apply adds the changes up to a revision, in their order. Reads below compact are no longer answered.
func (c *Census) Apply(changes []Change, upTo, compact kv.Revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range changes {
		c.apply(&changes[i])
	}
	c.table.applied, c.table.horizon = upTo, max(c.table.horizon, compact)
	c.table.forget(visitsOfStep + visitsOfChange*len(changes))
}

func (c *Census) apply(change *Change) {
	i := c.hint
	if !c.table.holds(i, change.Key) {
		i = c.table.find(change.Key)
		c.hint = i
	}
	if c.survey != nil {
		c.survey.note(change)
	}
	v := &c.table.intervals[i]
	if !v.known() {
		return
	}
	room := cap(v.log)
	v.add(change.Revision, change.Born, c.table.horizon)
	c.table.logBytes += (cap(v.log) - room) * markBytes
	if v.weight > v.limit {
		c.due.Store(true)
	}
}

// Count returns the number of keys in a range at a revision that was applied, but for the keys in walk: the caller counts
// those.
func (c *Census) Count(key, end []byte, rev kv.Revision) (count int64, walk []Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := isOpen(end)
	for i := c.table.find(key); i < len(c.table.intervals); i++ {
		v := &c.table.intervals[i]
		if !open && v.bound >= string(end) {
			break
		}
		upper, last := c.table.upper(i)
		whole := v.bound >= string(key) && (open || !last && string(upper) <= string(end))
		if whole {
			if n, known := v.at(rev); known {
				count += n
				continue
			}
		} else {
			c.want(v)
		}
		part := Span{Key: key, End: end}
		if v.bound > string(key) {
			part.Key = []byte(v.bound)
		}
		if !last && (open || string(upper) < string(end)) {
			part.End = []byte(upper)
		}
		if n := len(walk); n > 0 && bytes.Equal(walk[n-1].End, part.Key) {
			walk[n-1].End = part.End
			continue
		}
		walk = append(walk, part)
	}
	return count, walk
}

// want makes an interval due for division in which a range ends, if that would make walks through it shorter.
func (c *Census) want(v *interval) {
	keys := c.table.options.Keys
	if limit := divideWanted * keys; v.known() && v.limit == divideAt*keys && v.weight > limit {
		v.limit = limit
		c.due.Store(true)
	}
}

// Due reports whether Begin may find an interval to divide.
func (c *Census) Due() bool { return c.due.Load() }

// Stats are the size of a census.
type Stats struct {
	Intervals int
	Unknown   int // of these
	Bytes     int
	Horizon   kv.Revision // reads of older revisions are not answered
	Corrected int64
}

// Stats returns the size now.
func (c *Census) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &c.table
	s := Stats{
		Intervals: len(t.intervals), Bytes: t.logBytes + t.fixedBytes(), Horizon: t.horizon, Corrected: c.corrected,
	}
	for i := range c.table.intervals {
		if !c.table.intervals[i].known() {
			s.Unknown++
		}
	}
	return s
}
