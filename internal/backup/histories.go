package backup

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Beside says why a plan from which nothing leads on to the newest state may be of a history that was given up.
func (c *Catalog) Beside(p *Plan) error {
	if p.lives || c.chosen {
		return nil
	}
	end := p.LineEnd()
	if end.Epoch < p.Newest.Epoch {
		return &EndedError{Target: p.Target, End: end, Newest: p.Newest}
	}
	l := c.lineTo(c.joints(never), p.Newest.Point, nil)
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

// mostOverlaps bounds the searches of History for segments that lead to the first one of a line from within.
const mostOverlaps = 64

// tracing is History at work.
type tracing struct {
	*Catalog
	joints   *joints
	end      Point
	epoch    uint64
	taken    []bool // by segment
	points   map[Point]bool
	roads    []Point // from which nobody went back yet
	overlaps int     // that were searched
	crossing []Link  // by which segments were taken since names tell that they may go through a state
}

func (t *tracing) take(i int) {
	t.taken[i] = true
	for _, at := range []Point{t.Segments[i].Start(), t.Segments[i].End} {
		if !t.points[at] {
			t.points[at] = true
			t.roads = append(t.roads, at)
		}
	}
}

// back takes all segments that end with a state: the sum proves that they are of its history. If none does, it takes those that
// go through the state as far as names tell.
func (t *tracing) back(at Point) {
	i, found := t.joints.ends[at]
	any := false
	for ; found && i >= 0; i = t.joints.same[i] {
		if !t.joints.without(t.Segments[i].Hash) {
			t.take(i)
			any = true
		}
	}
	if !any {
		t.within(at)
	}
}

func (t *tracing) within(at Point) {
	if at == t.end || at.Index == 0 {
		return
	}
	t.overlaps++
	for i := range t.Segments {
		s := &t.Segments[i]
		if t.overlaps > mostOverlaps || s.First > at.Index {
			break
		}
		if !t.taken[i] && !t.joints.without(s.Hash) && at.Index < s.End.Index && s.End.Index < t.end.Index &&
			s.Epoch <= t.epoch {
			l := Link{Segment: s, At: Head{Point: at}}
			if through, known := t.Noted(&l); known && !through {
				continue
			}
			t.take(i)
			t.crossing = append(t.crossing, l)
		}
	}
}

func (c *Catalog) tracing(j *joints, end Point, epoch uint64) *tracing {
	return &tracing{Catalog: c, joints: j, end: end, epoch: epoch, taken: make([]bool, len(c.Segments)),
		points: map[Point]bool{end: true}, roads: []Point{end}}
}

// trace takes all that leads to the end, and returns which segments it took.
func (t *tracing) trace() []bool {
	for len(t.roads) > 0 {
		at := t.roads[0]
		t.roads = t.roads[1:]
		t.back(at)
	}
	return t.taken
}

// History returns what the catalog has of the history that leads to a state: its bases and segments, and notes. The state is
// one that a segment or a base ends with. Plans say if more segments overlap than it searches.
func (c *Catalog) History(end Point) (*Catalog, error) {
	j := c.joints(never)
	epoch, found := c.epochOf(j, end)
	if !found {
		return nil, fmt.Errorf("no object of cluster %v ends with the state %s: `quorate backup list` shows those with which "+
			"histories end", c.Cluster, PointName(end))
	}
	t := c.tracing(j, end, epoch)
	t.trace()
	of := &Catalog{Cluster: c.Cluster, Gaps: c.Gaps, Kept: c.Kept, Foreign: c.Foreign, Cut: c.Cut, links: c.links, chosen: true,
		to: end, proved: map[Hash]bool{}, overlaps: t.overlaps}
	for i := range c.Segments {
		if t.taken[i] {
			of.Segments = append(of.Segments, c.Segments[i])
		}
	}
	within := of.within()
	for i := range c.Bases {
		if b := &c.Bases[i]; t.points[b.Point] {
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
