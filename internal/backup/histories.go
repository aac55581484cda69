package backup

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Stray is the end of a segment that no other segment continues by its name, though one of a line has its entry. Either that
// one goes through it (Link), as after two members shipped at once, or the place has two histories.
type Stray struct {
	Link
	End   Head
	Parts consensus.Index // the states up to this one are of both
	time  int64           // of the first state after it, about
}

// line are segments that follow each other, in the order of the log.
type line struct {
	segments []*Stored
	points   map[Point]bool // at which they begin and end
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

// joints are where segments begin and end.
type joints struct {
	ends   map[Point]int // a segment that ends there
	starts map[Point]bool
	steps  int // that a search for strays may take
}

func (c *Catalog) joints() *joints {
	j := &joints{ends: map[Point]int{}, starts: map[Point]bool{}}
	for i := range c.Segments {
		s := &c.Segments[i]
		if _, known := j.ends[s.End]; !known {
			j.ends[s.End] = i
		}
		j.starts[s.Start()] = true
	}
	return j
}

// lineTo returns the line of segments that leads to a point, each of which continues the one before by its name, and others
// after it.
func (c *Catalog) lineTo(j *joints, at Point, then []Stored) *line {
	l := &line{points: map[Point]bool{at: true}}
	for i, found := j.ends[at]; found; i, found = j.ends[at] {
		l.segments = append(l.segments, &c.Segments[i])
		at = c.Segments[i].Start()
		l.points[at] = true
	}
	slices.Reverse(l.segments)
	for i := range then {
		l.segments = append(l.segments, &then[i])
		l.points[then[i].End] = true
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
	return l
}

// MaxStrays bounds the ends that are looked at beside a line: where a place has more, one more is returned.
const MaxStrays = 1024

// straysOf returns the ends that a line leaves out, of an epoch and later ones, if they matter.
func (c *Catalog) straysOf(j *joints, l *line, epoch uint64, matters func(*Stray) bool) (strays []Stray) {
	j.steps = 4 * (len(c.Segments) + MaxStrays)
	for i := range c.Segments {
		s := &c.Segments[i]
		if s.Epoch < epoch || j.starts[s.End] || l.points[s.End] {
			continue
		}
		if stray := (Stray{End: s.Head()}); c.stray(j, l, s, &stray) && matters(&stray) {
			strays = append(strays, stray)
		}
		if len(strays) > MaxStrays {
			break
		}
	}
	return strays
}

// stray finds out where the segments that lead to an end leave a line; false if they have no entry of it.
func (c *Catalog) stray(j *joints, l *line, end *Stored, stray *Stray) bool {
	if over := l.over(end.End.Index); over != nil {
		stray.Link = Link{Segment: over, At: end.Head(), Of: end}
	}
	last := (*Stored)(nil)
	if n := len(l.segments); n > 0 {
		last = l.segments[n-1]
	}
	for s := end; ; {
		if stray.Segment == nil && last != nil && s.First <= last.End.Index && last.End.Index < s.End.Index {
			stray.Link = Link{Segment: s, At: last.Head(), Of: last} // it goes further than the line
		}
		stray.Parts, stray.time = s.First-1, s.Time
		before, known := j.ends[s.Start()]
		if !known || l.points[s.Start()] {
			return stray.Segment != nil
		}
		if j.steps--; j.steps < 0 { // somebody made it up: it is taken to leave the line at the beginning
			stray.Parts = 0
			return stray.Segment != nil
		}
		s = &c.Segments[before]
	}
}

// Strays returns the ends beside the line of a plan that may be of another history, if the state of the plan would be another
// one there. Histories of former epochs are none of them: recoveries ended these.
func (c *Catalog) Strays(p *Plan) []Stray {
	j := c.joints()
	l := c.lineOf(j, p)
	epoch := p.Base.Epoch
	if n := len(l.segments); n > 0 {
		epoch = max(epoch, l.segments[n-1].Epoch)
	}
	return c.straysOf(j, l, epoch, func(s *Stray) bool {
		return p.End.Index > s.Parts || p.Target.Time != 0 && s.time <= p.Target.Time
	})
}

// Ends returns the ends beside the line of the newest state, of all epochs, that may be of another history.
func (c *Catalog) Ends() (newest Head, ends []Stray) {
	newest, found := c.Newest()
	if !found {
		return newest, nil
	}
	j := c.joints()
	return newest, c.straysOf(j, c.lineTo(j, newest.Point, nil), 0, func(*Stray) bool { return true })
}

// Beside says why a plan from which nothing leads on to the newest state may be of a history that was given up.
func (c *Catalog) Beside(p *Plan) error {
	if p.lives || c.chosen {
		return nil
	}
	end := p.LineEnd()
	if end.Epoch < p.Newest.Epoch {
		return &EndedError{Target: p.Target, End: end, Newest: p.Newest}
	}
	l := c.lineTo(c.joints(), p.Newest.Point, nil)
	if len(l.segments) > 0 && l.segments[0].First <= p.End.Index {
		return &HistoriesError{Target: p.Target, Ends: []Head{p.Newest, end}}
	}
	return nil
}

// Chosen reports whether History made the catalog.
func (c *Catalog) Chosen() bool { return c.chosen }

// Unproved reports whether nothing tells that the base of a plan is of the history that was chosen.
func (c *Catalog) Unproved(p *Plan) bool {
	return c.chosen && !c.proved[p.Base.Hash] && len(p.Segments)+len(p.rest) == 0
}

// mostRoots bounds the searches of History for segments that lead to the first one of a line.
const mostRoots = 64

// History returns what the catalog has of the history that leads to a state: its bases and segments, and notes. The state is
// one that a segment or a base ends with.
func (c *Catalog) History(end Point) (*Catalog, error) {
	j := c.joints()
	epoch, found := c.epochOf(j, end)
	if !found {
		return nil, fmt.Errorf("no object of cluster %v ends with the state %s: `quorate backup list` shows those with which "+
			"histories end", c.Cluster, PointName(end))
	}
	of := &Catalog{Cluster: c.Cluster, Gaps: c.Gaps, Kept: c.Kept, Foreign: c.Foreign, Cut: c.Cut, links: c.links, chosen: true,
		proved: map[Hash]bool{}}
	taken := map[int]bool{}
	points := map[Point]bool{end: true}
	roots := []Point{end}
	for n := 0; n < len(roots) && n < mostRoots; n++ {
		at := roots[n]
		for i, found := j.ends[at]; found && !taken[i]; i, found = j.ends[at] {
			taken[i] = true
			at = c.Segments[i].Start()
			points[at] = true
		}
		for i := range c.Segments { // the first one goes on from within others, as far as names tell
			s := &c.Segments[i]
			if s.First > at.Index {
				break
			}
			if !taken[i] && at.Index < s.End.Index && s.End.Index < end.Index && s.Epoch <= epoch && at != end {
				taken[i] = true
				points[s.End], points[s.Start()] = true, true
				roots = append(roots, s.Start())
			}
		}
	}
	for i := range c.Segments {
		if taken[i] {
			of.Segments = append(of.Segments, c.Segments[i])
		}
	}
	within := of.within()
	for i := range c.Bases {
		if b := &c.Bases[i]; points[b.Point] {
			of.proved[b.Hash] = true
			of.Bases = append(of.Bases, *b)
		} else if b.Index < end.Index && b.Epoch <= epoch && within(b.Index) {
			of.Bases = append(of.Bases, *b)
		}
	}
	return of, nil
}

// LeadingTo returns what of the catalog leads to a state, with what is before all of that, as behind a gap. Somebody who can
// write to the place may have put the rest beside it.
func (c *Catalog) LeadingTo(end Point) (*Catalog, error) {
	of, err := c.History(end)
	if err != nil {
		return nil, err
	}
	first := end.Index
	if len(of.Segments) > 0 {
		first = of.Segments[0].First - 1
	}
	before := &Catalog{}
	for i := range c.Segments {
		if c.Segments[i].End.Index <= first {
			before.Segments = append(before.Segments, c.Segments[i])
		}
	}
	for i := range c.Bases {
		if b := &c.Bases[i]; b.Index <= first && b.Point != end && !of.proved[b.Hash] {
			before.Bases = append(before.Bases, *b)
		}
	}
	of.Segments, of.Bases = append(before.Segments, of.Segments...), append(before.Bases, of.Bases...)
	of.chosen = false
	of.Sort()
	return of, nil
}

// epochOf returns the epoch of the segment or the base that ends with a state.
func (c *Catalog) epochOf(j *joints, end Point) (epoch uint64, found bool) {
	if i, found := j.ends[end]; found {
		return c.Segments[i].Epoch, true
	}
	for i := range c.Bases {
		if c.Bases[i].Point == end {
			return c.Bases[i].Epoch, true
		}
	}
	return 0, false
}

// within returns whether a segment begins before an entry and ends after it.
func (c *Catalog) within() func(consensus.Index) bool {
	last := make([]consensus.Index, len(c.Segments)) // of the segments up to each
	for i := range c.Segments {
		last[i] = c.Segments[i].End.Index
		if i > 0 {
			last[i] = max(last[i], last[i-1])
		}
	}
	return func(index consensus.Index) bool {
		n, _ := slices.BinarySearchFunc(c.Segments, index+1, func(s Stored, first consensus.Index) int {
			return cmp.Compare(s.First, first)
		})
		return n > 0 && last[n-1] > index
	}
}

// EndedError says that a state is of a former epoch, and that nothing leads from it to the newest one.
type EndedError struct {
	Target      Target
	End, Newest Head // with which the history ends that has the state, and the newest state
}

func (e *EndedError) Error() string {
	return fmt.Sprintf("%v is of epoch %d of the cluster, and nothing at the place leads from there to the newest state, %s "+
		"of epoch %d: a recovery may have lost it. If it is meant, name its history: --history %s", e.Target, e.End.Epoch,
		said(&e.Newest), e.Newest.Epoch, PointName(e.End.Point))
}

// HistoriesError says that a place has two histories of a cluster in one epoch, and that a target is not in both.
type HistoriesError struct {
	Target Target
	Ends   []Head // of the two
}

func (e *HistoriesError) Error() string {
	return fmt.Sprintf("%v is ambiguous: the place has two histories of this cluster, as after all volumes were rolled back. "+
		"One ends with %s, the other with %s. Choose one: --history %s or --history %s", e.Target, said(&e.Ends[0]),
		said(&e.Ends[1]), PointName(e.Ends[0].Point), PointName(e.Ends[1].Point))
}

func said(h *Head) string {
	return fmt.Sprintf("entry %d, revision %d, of %s", h.Index, h.Revision, Time(h.Time))
}
