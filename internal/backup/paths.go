package backup

import "github.com/quorate/quorate/internal/consensus"

// edge is a segment that can be applied after another one, or after the base (before is -1). It is sure if the names prove that
// it continues that: by the index and the sum.
type edge struct {
	segment, before int
	sure            bool
}

// paths are the segments that lead on from a base, each by one road.
type paths struct {
	edges  []edge
	same   []int         // of each edge the one before that ends with the same index; -1: none does
	ends   map[Point]int // the edge that ends there
	orders [2]order      // edges by their last index: those in the clear, and those that are encrypted
	// parted are the ends of segments that are of another history than the base: than all edges that end with an entry or
	// behind it.
	parted map[Point]consensus.Index
	steps  int // that may be taken past edges of the other history
}

// link is what an edge that is not sure claims.
func (p *paths) link(c *Catalog, base *Base, e *edge) Link {
	return p.linkOf(c, base, &c.Segments[e.segment], e.before)
}

// linkOf is the claim of a segment that it goes through the end of an edge, or through the base (-1).
func (p *paths) linkOf(c *Catalog, base *Base, s *Stored, before int) Link {
	l := Link{Segment: s, At: base.Head(), Base: base}
	if before >= 0 {
		of := &c.Segments[p.edges[before].segment]
		l.At, l.Of, l.Base = of.Head(), of, nil
	}
	return l
}

// end returns the edge that ends with a state, or -1.
func (p *paths) end(c *Catalog, at *Head) int {
	if e, found := p.ends[at.Point]; found {
		return e
	}
	for i := len(p.edges) - 1; i >= 0; i-- { // of another set of recipients
		if h := c.Segments[p.edges[i].segment].Head(); h.is(at) {
			return i
		}
	}
	return -1
}

// latest returns the edge with the latest head, or -1.
func (p *paths) latest(c *Catalog) int {
	latest := -1
	for i := range p.edges {
		h := c.Segments[p.edges[i].segment].Head()
		if latest < 0 {
			latest = i
		} else if than := c.Segments[p.edges[latest].segment].Head(); h.later(&than) {
			latest = i
		}
	}
	return latest
}

// reach finds which segments lead on from a base. A segment that begins where another one ended follows it if their sums
// agree. One that begins before that, and ends after it, may follow it: whether its sums agree is found when it is read. If it
// was found that they do not, it may follow what ends before that one: somebody may have made up the one between. If it follows
// nothing, neither does what continues it.
func (c *Catalog) reach(base *Base, without func(Hash) bool) *paths {
	p := &paths{ends: map[Point]int{}, orders: [2]order{orderOf(c.Segments, false), orderOf(c.Segments, true)},
		parted: map[Point]consensus.Index{}, steps: 4 * len(c.Segments)}
	for i := range c.Segments { // sorted by their first index: what could come before a segment has been seen
		s := &c.Segments[i]
		if s.End.Index <= base.Index || without(s.Hash) {
			continue
		}
		if _, known := p.ends[s.End]; known {
			continue
		}
		e, ok := p.before(c, base, s)
		if !ok {
			continue
		}
		e.segment = i
		p.edges = append(p.edges, e)
		at := len(p.edges) - 1
		p.ends[s.End] = at
		p.same = append(p.same, p.orders[sealed(s)].insert(s.End.Index, at))
	}
	return p
}

// sealed is the order of a segment.
func sealed(s *Stored) int {
	if s.Set != 0 {
		return 1
	}
	return 0
}

// before returns the edge of a segment without its number: that after the one that it follows, or after the base.
func (p *paths) before(c *Catalog, base *Base, s *Stored) (e edge, ok bool) {
	if s.Start() == base.Point {
		return edge{before: -1, sure: true}, true
	}
	if e, found := p.ends[s.Start()]; found {
		return edge{before: e, sure: true}, true
	}
	w := within{paths: p, catalog: c, base: base, segment: s, apart: p.parted[s.Start()]}
	if e, ok = w.edge(); ok {
		return e, true
	}
	if w.apart > 0 {
		p.parted[s.End] = w.apart
	} else if w.parts {
		p.parted[s.End] = s.First
	}
	return edge{}, false
}

// within looks for the last state within a segment to which edges lead, and through which it may go.
type within struct {
	*paths
	catalog *Catalog
	base    *Base
	segment *Stored
	apart   consensus.Index // the segment continues one that is of another history than edges that end there or behind it
	parts   bool            // it is known of a state that the segment does not go through it
}

func (w *within) edge() (e edge, ok bool) {
	e.before = -1
	last := consensus.Index(0)
	for i, find := range []func() (int, bool){w.clear, w.sealed} {
		if at, found := find(); found {
			if end := w.endOf(at).Index; i == 0 || end > last {
				e.before, last = at, end
			}
		}
	}
	if e.before >= 0 {
		return e, true
	}
	return e, w.base.Index >= w.segment.First && w.may(-1)
}

func (w *within) endOf(edge int) Point { return w.catalog.Segments[w.edges[edge].segment].End }

// clear looks among the edges in the clear: where the segment was read it is known through which it goes.
func (w *within) clear() (edge int, found bool) {
	r := w.catalog.readings[w.segment.Hash]
	if r == nil {
		return w.below(&w.orders[0], w.segment.End.Index)
	}
	w.parts = true
	for _, point := range r.points {
		if at, found := w.ends[point]; found && w.passes(at) {
			return at, true
		}
	}
	return w.below(&w.orders[0], r.down)
}

func (w *within) sealed() (edge int, found bool) { return w.below(&w.orders[1], w.segment.End.Index) }

// below looks among the edges of an order that end before an index. Each that is left out was noted.
func (w *within) below(o *order, index consensus.Index) (edge int, found bool) {
	for at, end := o.below(index); at >= 0 && end >= w.segment.First && w.steps >= 0; at, end = o.below(end) {
		for ; at >= 0; at = w.same[at] {
			if w.passes(at) {
				return at, true
			}
		}
	}
	return 0, false
}

// passes reports whether the segment may follow an edge.
func (w *within) passes(at int) bool {
	if w.apart > 0 {
		begin := w.base.Index
		if before := w.edges[at].before; before >= 0 {
			begin = w.endOf(before).Index
		}
		if begin >= w.apart { // it is of a history from which the segment parts
			w.steps--
			return false
		}
	}
	return w.may(at)
}

// may reports whether it is not known that the segment does not go through the end of an edge, or through the base (-1).
func (w *within) may(edge int) bool {
	parted := w.catalog.parted(w.linkOf(w.catalog, w.base, w.segment, edge))
	w.parts = w.parts || parted
	return !parted
}

// LeadOn returns the segments that lead on from a base, each after one that leads to it.
func (c *Catalog) LeadOn(base *Base) []*Stored {
	p := c.reach(base, func(Hash) bool { return false })
	segments := make([]*Stored, len(p.edges))
	for i := range p.edges {
		segments[i] = &c.Segments[p.edges[i].segment]
	}
	return segments
}
