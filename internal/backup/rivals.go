package backup

import "github.com/quorate/quorate/internal/consensus"

// Rivals returns the segments beside the line of a plan that have a state for one of the indexes from..to, if they may be of
// the same history: those that lead back to the line by their names, and the others of its epoch, since a recovery ended
// former ones. Of a history that was chosen they are those that lead to its end. Names do not tell whether they agree with the
// line: somebody who can write to the place may have put it there. A plan without segments has none. without are objects that
// were found to be damaged.
func (c *Catalog) Rivals(p *Plan, from, to consensus.Index, without func(Hash) bool) (rivals []*Stored) {
	if len(p.Segments) == 0 {
		return nil
	}
	last := p.Segments[len(p.Segments)-1].Hash
	var over []int
	for i := range c.Segments {
		s := &c.Segments[i]
		if s.First > to+1 {
			break
		}
		if s.End.Index >= from && s.Hash != last && !without(s.Hash) {
			over = append(over, i)
		}
	}
	if len(over) == 0 {
		return nil
	}
	j := c.joints(without)
	l := c.lineOf(j, p)
	ours := map[Hash]bool{}
	for _, s := range l.segments {
		ours[s.Hash] = true
	}
	var leads []bool // by segment
	if c.chosen {
		leads = c.tracing(j, c.to, l.last.Epoch).trace()
	} else {
		leads = c.leadBack(l, without)
	}
	for _, i := range over {
		if s := &c.Segments[i]; !ours[s.Hash] && (leads[i] || !c.chosen && s.Epoch >= l.last.Epoch) {
			rivals = append(rivals, s)
		}
	}
	return rivals
}

// leadBack reports of each segment whether it, or what continues it by its name, ends on a line.
func (c *Catalog) leadBack(l *line, without func(Hash) bool) []bool {
	leads, starts := make([]bool, len(c.Segments)), map[Point]bool{}
	for i := len(c.Segments) - 1; i >= 0; i-- { // sorted by their first index: what continues a segment has been seen
		s := &c.Segments[i]
		if !without(s.Hash) && (l.points[s.End] || starts[s.End]) {
			leads[i], starts[s.Start()] = true, true
		}
	}
	return leads
}

// Further returns a plan for a later entry of the line of a plan, from the same base: that with an index, or the last one.
func (p *Plan) Further(index consensus.Index) *Plan {
	line := append(append([]Stored(nil), p.Segments...), p.rest...)
	further := *p
	further.Target, further.Short = Target{Index: min(index, p.LineEnd().Index)}, false
	further.Segments, further.rest, further.End = line, nil, p.LineEnd()
	for i := range line {
		if further.Target.reached(new(line[i].Head())) {
			further.Segments, further.rest, further.End = line[:i+1:i+1], line[i+1:], line[i].Head()
			break
		}
	}
	return &further
}

// Behind returns the last entry of the line of a plan that is at most so many entries, and bytes of segments, behind another
// one.
func (p *Plan) Behind(index, entries consensus.Index, bytes int64) consensus.Index {
	last := index
	for i := range p.rest {
		s := &p.rest[i]
		if s.End.Index <= index {
			continue
		}
		if bytes -= s.Size; bytes < 0 {
			break
		}
		last = min(s.End.Index, index+entries)
	}
	return last
}

// Crossing returns the links by which segments are taken for those of the history that was chosen, and that names alone tell
// of: states of the history lie within them. Names of encrypted segments have no sums to compare.
func (c *Catalog) Crossing(p *Plan, without func(Hash) bool) (links []Link) {
	if !c.chosen {
		return nil
	}
	t := c.tracing(c.joints(without), c.to, p.Newest.Epoch)
	t.trace()
	for i := range t.crossing {
		if l := &t.crossing[i]; l.Segment.Set == 0 {
			links = append(links, *l)
		}
	}
	return links
}
