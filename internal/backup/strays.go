package backup

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Stray is a state at the place that may be of another history than a line: the end of a segment that no other segment
// continues by its name, or a base. If the line has its entry the Link compares the two: the same history leads to both, as
// after two members shipped at once, or the place has two histories.
type Stray struct {
	Link  // Segment is nil if names alone tell that the state is of another history
	End   Head
	Parts consensus.Index // the states up to this one are of both
	// Others compare a base with histories that part from the line only after what is asked for.
	Others []Link
	begin  consensus.Index // before the first entry of the segments that lead to it
	time   int64           // of the first state after Parts, about
}

// Apart reports whether names alone tell that a stray is of another history.
func (s *Stray) Apart() bool { return s.Segment == nil }

// Covers reports whether a state is among those of the segments that lead to a stray, by its index.
func (s *Stray) Covers(index consensus.Index) bool { return s.begin <= index && index <= s.End.Index }

// line are segments that follow each other, in the order of the log.
type line struct {
	segments []*Stored
	points   map[Point]bool // at which they begin and end
	first    Head           // the first state of which the names tell time and revision: where the line begins, or soon after
	last     Head
}

// over returns the segment that has an entry; nil: none does.
func (l *line) over(index consensus.Index) *Stored {
	i, _ := slices.BinarySearchFunc(l.segments, index, func(s *Stored, index consensus.Index) int {
		return cmp.Compare(s.End.Index, index)
	})
	if i == len(l.segments) || l.segments[i].First > index {
		return nil
	}
	return l.segments[i]
}

// begin is the index of the state with which a line begins.
func (l *line) begin() consensus.Index {
	if len(l.segments) > 0 {
		return l.segments[0].First - 1
	}
	return l.first.Index
}

// apartBy is how far clocks of members may differ, in milliseconds.
const apartBy int64 = 3600_000

// compare returns the segment of a line that has a state of its own for an index, and otherwise whether names alone tell that a
// state is of another history: along one history neither time nor revision falls.
func (l *line) compare(at Head) (through *Stored, apart bool) {
	begin := l.begin()
	switch {
	case at.Index == begin && len(l.segments) > 0:
		return l.segments[0], false
	case at.Index == begin:
		return nil, at.Set == l.first.Set || at.after(&l.first)
	case at.Index < begin:
		return nil, at.after(&l.first)
	case at.Index > l.last.Index:
		return nil, at.Epoch < l.last.Epoch // a recovery lost it
	}
	return l.over(at.Index), false
}

// after reports whether a state cannot come before another one.
func (h *Head) after(other *Head) bool {
	return h.Revision > other.Revision || h.Time > other.Time+apartBy
}

// joints are where segments begin and end.
type joints struct {
	ends    map[Point]int // the first segment that ends there
	same    []int         // of each segment the next one that ends where it does; -1: none
	starts  map[Point]bool
	without func(Hash) bool // segments that are damaged
	steps   int             // that a search for strays may take
}

func never(Hash) bool { return false }

func (c *Catalog) joints(without func(Hash) bool) *joints {
	j := &joints{ends: map[Point]int{}, same: make([]int, len(c.Segments)), starts: map[Point]bool{}, without: without}
	for i := len(c.Segments) - 1; i >= 0; i-- {
		s := &c.Segments[i]
		next, known := j.ends[s.End]
		if !known {
			next = -1
		}
		j.same[i], j.ends[s.End] = next, i
		j.starts[s.Start()] = true
	}
	return j
}

// ending returns a segment that ends with a state, one that is not damaged if there is one.
func (c *Catalog) ending(j *joints, at Point) (*Stored, bool) {
	first, found := j.ends[at]
	if !found {
		return nil, false
	}
	for i := first; i >= 0; i = j.same[i] {
		if !j.without(c.Segments[i].Hash) {
			return &c.Segments[i], true
		}
	}
	return &c.Segments[first], true
}

// lineTo returns the line of segments that leads to a state, each of which continues the one before by its name, and others
// after it.
func (c *Catalog) lineTo(j *joints, at Point, then []Stored) *line {
	l := &line{points: map[Point]bool{at: true}}
	for s, found := c.ending(j, at); found; s, found = c.ending(j, at) {
		l.segments = append(l.segments, s)
		at = s.Start()
		l.points[at] = true
	}
	slices.Reverse(l.segments)
	for i := range then {
		l.segments = append(l.segments, &then[i])
		l.points[then[i].End] = true
	}
	if n := len(l.segments); n > 0 {
		l.first, l.last = l.segments[0].Head(), l.segments[n-1].Head()
	}
	return l
}

// lineOf returns the line of a plan, with what is before its base.
func (c *Catalog) lineOf(j *joints, p *Plan) *line {
	then := append(slices.Clip(p.Segments), p.rest...)
	at := p.Base.Point
	if len(then) > 0 {
		at = then[0].Start()
	}
	l := c.lineTo(j, at, then)
	l.points[p.Base.Point] = true
	base := p.Base.Head()
	if len(l.segments) == 0 {
		l.first, l.last = base, base
	} else if base.Index <= l.first.Index {
		l.first = base
	}
	return l
}

// MaxStrays bounds the ends of segments that are looked at beside a line, and the bases: where a place has more ends, one more
// is returned, and of the bases the newest ones.
const MaxStrays = 1024

// straysOf returns what a line leaves out, of an epoch and later ones, if it matters: first ends of segments, then bases.
func (c *Catalog) straysOf(j *joints, l *line, epoch uint64, matters func(*Stray) bool) (ends, bases []Stray) {
	j.steps = 4 * (len(c.Segments) + MaxStrays)
	var others []Stray // that do not matter
	for i := range c.Segments {
		s := &c.Segments[i]
		if s.Epoch < epoch || j.starts[s.End] || l.points[s.End] {
			continue
		}
		stray := Stray{End: s.Head()}
		switch is := c.stray(j, l, s, &stray); {
		case is && matters(&stray):
			ends = append(ends, stray)
		case is && len(others) < MaxStrays:
			others = append(others, stray)
		}
		if len(ends) > MaxStrays {
			break
		}
	}
	for i := len(c.Bases) - 1; i >= 0 && len(bases) < MaxStrays; i-- {
		b := &c.Bases[i]
		if b.Epoch < epoch || l.points[b.Point] || j.without(b.Hash) {
			continue
		}
		stray := Stray{End: b.Head(), begin: b.Index}
		through, apart := l.compare(b.Head())
		if through != nil {
			stray.Link = Link{Segment: through, At: b.Head(), Base: b}
		}
		if (through != nil || apart) && matters(&stray) && !c.among(j, b, &stray, others) {
			bases = append(bases, stray)
		}
	}
	return ends, bases
}

// among reports whether a base is, by its name, of one of some histories. Where a segment of them may go through it, it notes a
// link of others.
func (c *Catalog) among(j *joints, b *Base, stray *Stray, others []Stray) bool {
	for i := range others {
		o := &others[i]
		if !o.Covers(b.Index) {
			continue
		}
		s, found := c.ending(j, o.End.Point)
		for ; found && s.First > b.Index+1 && j.steps > 0; s, found = c.ending(j, s.Start()) {
			j.steps--
		}
		switch {
		case !found || s.First > b.Index+1:
		case s.Start() == b.Point || s.End == b.Point:
			return true
		default:
			stray.Others = append(stray.Others, Link{Segment: s, At: b.Head(), Base: b})
		}
	}
	return false
}

// stray finds out where the segments that lead to an end leave a line; false if nothing tells of another history.
func (c *Catalog) stray(j *joints, l *line, end *Stored, stray *Stray) bool {
	through, apart := l.compare(end.Head())
	if through != nil {
		stray.Link = Link{Segment: through, At: end.Head(), Of: end}
	}
	last := (*Stored)(nil)
	if n := len(l.segments); n > 0 {
		last = l.segments[n-1]
	}
	for s := end; ; {
		if stray.Segment == nil && last != nil && s.First <= last.End.Index && last.End.Index < s.End.Index {
			stray.Link = Link{Segment: s, At: last.Head(), Of: last} // it goes further than the line
		}
		stray.begin, stray.time = s.First-1, s.Time
		if l.points[s.Start()] {
			stray.Parts = stray.begin
			break
		}
		before, known := c.ending(j, s.Start())
		if j.steps--; !known || j.steps < 0 { // nothing tells where the two parted, or somebody made it up
			break
		}
		s = before
	}
	return apart || stray.Segment != nil
}

// Strays returns what is beside the line of a plan and may be of another history, if the state of the plan would be another one
// there: ends of segments, MaxStrays and one at most, and bases. Histories of former epochs are none of them: recoveries ended
// these. without are objects that were found to be damaged.
func (c *Catalog) Strays(p *Plan, without func(Hash) bool) (ends, bases []Stray) {
	j := c.joints(without)
	l := c.lineOf(j, p)
	epoch := p.Base.Epoch
	if n := len(l.segments); n > 0 {
		epoch = max(epoch, l.segments[n-1].Epoch)
	}
	return c.straysOf(j, l, epoch, func(s *Stray) bool {
		return p.End.Index > s.Parts || p.Target.Time != 0 && s.time <= p.Target.Time
	})
}

// Ends returns what is beside the line of the newest state, of all epochs, and may be of another history. latest is the plan
// for that state; nil: there is none, and names alone tell of the line.
func (c *Catalog) Ends(latest *Plan, without func(Hash) bool) (newest Head, ends, bases []Stray) {
	newest, found := c.Newest()
	if !found {
		return newest, nil, nil
	}
	j := c.joints(without)
	var l *line
	if latest != nil {
		l = c.lineOf(j, latest)
	} else if l = c.lineTo(j, newest.Point, nil); len(l.segments) == 0 {
		l.first, l.last = newest, newest
	}
	ends, bases = c.straysOf(j, l, 0, func(*Stray) bool { return true })
	return newest, ends, bases
}

// Whole returns a link whose segments are not damaged, with others of the same range in the place of those; false if there are
// none. The segment that ends with the state is needed only if its name has no sum.
func (c *Catalog) Whole(l Link, without func(Hash) bool) (Link, bool) {
	if l.Of != nil && l.At.Set == 0 {
		l.Of = nil
	}
	for _, s := range []**Stored{&l.Segment, &l.Of} {
		if *s == nil || !without((*s).Hash) {
			continue
		}
		found := false
		for i := range c.Segments {
			other := &c.Segments[i]
			if other.Start() == (*s).Start() && other.End == (*s).End && !without(other.Hash) {
				*s, found = other, true
				break
			}
		}
		if !found {
			return l, false
		}
	}
	return l, true
}
