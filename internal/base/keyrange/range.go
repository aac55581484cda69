package keyrange

import "bytes"

// Range is the keys k with Start <= k < End. An empty End is the end of the key space, so the zero Range is every key.
type Range struct {
	Start, End []byte
}

// Single returns the range that holds just key.
func Single(key []byte) Range {
	both := make([]byte, 2*len(key)+1)
	n := copy(both, key)
	copy(both[n:], key)
	return Range{Start: both[:n:n], End: both[n:]}
}

// From returns the range that etcd's pair (key, end) means: no end is the single key, an end of one zero byte is
// everything from key on, anything else is [key, end).
func From(key, end []byte) Range {
	switch {
	case len(end) == 0:
		return Single(key)
	case len(end) == 1 && end[0] == 0:
		return Range{Start: key}
	}
	return Range{Start: key, End: end}
}

// IsSingle reports whether the range holds one key only, Start.
func (r Range) IsSingle() bool {
	n := len(r.Start)
	return len(r.End) == n+1 && r.End[n] == 0 && bytes.Equal(r.End[:n], r.Start)
}

// IsEmpty reports whether no key is in r.
func (r Range) IsEmpty() bool { return len(r.End) > 0 && bytes.Compare(r.Start, r.End) >= 0 }

// Contains reports whether key is in r.
func (r Range) Contains(key []byte) bool {
	return bytes.Compare(r.Start, key) <= 0 && (len(r.End) == 0 || bytes.Compare(key, r.End) < 0)
}

// Overlaps reports whether some key is in both.
func (r Range) Overlaps(other Range) bool {
	if r.IsEmpty() || other.IsEmpty() {
		return false
	}
	return before(r.Start, other.End) && before(other.Start, r.End)
}

// Covers reports whether every key of other is in r.
func (r Range) Covers(other Range) bool {
	return other.IsEmpty() || (bytes.Compare(r.Start, other.Start) <= 0 && compareEnds(other.End, r.End) <= 0)
}

// before reports whether a start lies before an end.
func before(start, end []byte) bool { return len(end) == 0 || bytes.Compare(start, end) < 0 }

// EndsAfter reports whether r has an end behind that of other.
func (r Range) EndsAfter(other Range) bool { return compareEnds(r.End, other.End) > 0 }

// compareEnds orders two ends, the empty one last.
func compareEnds(a, b []byte) int {
	switch {
	case len(a) == 0 && len(b) == 0:
		return 0
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return bytes.Compare(a, b)
}
