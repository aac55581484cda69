package keyrange

import (
	"bytes"
	"slices"
	"sort"
)

// Set is a union of ranges. The zero Set is empty.
type Set struct {
	ranges []Range
}

// Add puts every key of r into the set, merging what overlaps or touches.
func (s *Set) Add(r Range) {
	if r.IsEmpty() {
		return
	}
	// [lo, hi) are the ranges that overlap or touch r.
	lo := sort.Search(len(s.ranges), func(i int) bool {
		end := s.ranges[i].End
		return len(end) == 0 || bytes.Compare(end, r.Start) >= 0
	})
	hi := lo
	for hi < len(s.ranges) && (len(r.End) == 0 || bytes.Compare(s.ranges[hi].Start, r.End) <= 0) {
		hi++
	}
	if lo < hi {
		if bytes.Compare(s.ranges[lo].Start, r.Start) < 0 {
			r.Start = s.ranges[lo].Start
		}
		if compareEnds(s.ranges[hi-1].End, r.End) > 0 {
			r.End = s.ranges[hi-1].End
		}
	}
	s.ranges = slices.Replace(s.ranges, lo, hi, r)
}

// find returns the last range that starts at or before key.
func (s *Set) find(key []byte) (Range, bool) {
	at := sort.Search(len(s.ranges), func(i int) bool { return bytes.Compare(s.ranges[i].Start, key) > 0 })
	if at == 0 {
		return Range{}, false
	}
	return s.ranges[at-1], true
}

// At returns the range of the set in which key is.
func (s *Set) At(key []byte) (Range, bool) {
	r, ok := s.find(key)
	return r, ok && r.Contains(key)
}

// Contains reports whether key is in the set.
func (s *Set) Contains(key []byte) bool {
	_, ok := s.At(key)
	return ok
}

// Covers reports whether every key of r is in the set. One range of the set must do it, since none of them touch.
func (s *Set) Covers(r Range) bool {
	if r.IsEmpty() {
		return true
	}
	mine, ok := s.find(r.Start)
	return ok && mine.Covers(r)
}

// Overlaps reports whether some key of r is in the set.
func (s *Set) Overlaps(r Range) bool {
	if r.IsEmpty() {
		return false
	}
	if mine, ok := s.find(r.Start); ok && mine.Overlaps(r) {
		return true
	}
	at := sort.Search(len(s.ranges), func(i int) bool { return bytes.Compare(s.ranges[i].Start, r.Start) > 0 })
	return at < len(s.ranges) && s.ranges[at].Overlaps(r)
}

// Ranges returns the ranges in order. The caller must not modify them.
func (s *Set) Ranges() []Range { return s.ranges }

// Len returns the number of ranges.
func (s *Set) Len() int { return len(s.ranges) }
