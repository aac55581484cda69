package backup

import (
	"cmp"
	"slices"
)

// Link is the claim that a segment goes through a state which is not at its ends. Names do not prove it.
type Link struct {
	Segment *Stored
	At      Head
	Of      *Stored // the segment that ends with At; nil: Base is of At
	Base    *Base
}

func (l *Link) key() linked { return linked{l.Segment.Hash, l.At.Point} }

// Note notes whether the segment of a link goes through its state, by what it holds. No plan takes a link that is none.
func (c *Catalog) Note(l *Link, through bool) {
	if c.links == nil {
		c.links = map[linked]bool{}
	}
	c.links[l.key()] = through
}

// Noted returns what was noted of a link.
func (c *Catalog) Noted(l *Link) (through, known bool) {
	if through, known = c.links[l.key()]; known || l.At.Set != 0 || l.Of == nil {
		return through, known
	}
	r := c.readings[l.Segment.Hash]
	if r == nil || l.At.Index < r.down {
		return false, false
	}
	return slices.Contains(r.points, l.At.Point), true
}

func (c *Catalog) parted(l Link) bool {
	through, known := c.Noted(&l)
	return known && !through
}

// moreEnds is how many ends a reading learns from one look at the segment.
const moreEnds = 128

// Read notes of a segment that was read through which ends of others it goes: the last ones that are not noted yet.
func (c *Catalog) Read(of *Stored, s *Segment) {
	r := c.readings[of.Hash]
	if r == nil {
		r = &reading{down: of.End.Index}
		if c.readings == nil {
			c.readings = map[Hash]*reading{}
		}
		c.readings[of.Hash] = r
	}
	var points []Point
	for i := range c.Segments {
		other := &c.Segments[i]
		if other.First > of.End.Index {
			break
		}
		if at := other.End; other.Set == 0 && of.First <= at.Index && at.Index < r.down {
			if sum, has := s.SumAt(at.Index); has && sum == at.Sum {
				points = append(points, at)
			}
		}
	}
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(b.Index, a.Index) })
	points, r.down = slices.Compact(points), 0
	if len(points) > moreEnds {
		points = points[:moreEnds]
		r.down = points[moreEnds-1].Index
	}
	r.points = append(r.points, points...)
}
