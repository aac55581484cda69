package backup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
)

// MaxSegments bounds a catalog: some 128 bytes of memory each.
const MaxSegments = 64 << 20

// Base is a manifest in a place.
type Base struct {
	BaseName
	Size int64 // bytes of the manifest
}

// Stored is a segment in a place.
type Stored struct {
	SegmentName
	Size int64 // bytes
}

// Catalog is what a place holds of one cluster, by its names. Nothing in it is believed before the objects were read.
type Catalog struct {
	Cluster  consensus.ClusterID
	Bases    []Base    // sorted by index
	Segments []Stored  // sorted by first index
	Gaps     []GapName // sorted
	Kept     *KeptName // the last note of what was removed; nil: nothing was
	Foreign  int       // names that are none of a backup's
	// Cut is set if the list had more than is held: what leads to the first segments may be left out.
	Cut bool

	// links are claims of names that were compared with what the objects hold: whether the segment goes through the state.
	links    map[linked]bool
	readings map[Hash]*reading
	chosen   bool          // History made it: all is of one history
	to       Point         // the state with which that ends
	proved   map[Hash]bool // bases that are of it by their names
	overlaps int           // at which History searched, or would have
}

// Add adds an object of the cluster. A name of another kind is counted. An error means that there are too many.
func (c *Catalog) Add(name string, size int64) error {
	switch {
	case strings.HasPrefix(name, LogPrefix):
		if n, err := ParseSegment(name); err == nil && n.Cluster == c.Cluster {
			if c.Segments = append(c.Segments, Stored{n, size}); len(c.Segments) > MaxSegments {
				return fmt.Errorf("backup: more than %d segments of cluster %v", MaxSegments, c.Cluster)
			}
			return nil
		}
	case strings.HasPrefix(name, BasePrefix):
		if n, err := ParseBase(name); err == nil && n.Cluster == c.Cluster {
			c.Bases = append(c.Bases, Base{n, size})
			return nil
		}
	case strings.HasPrefix(name, KeptPrefix):
		if n, err := ParseKept(name); err == nil && n.Cluster == c.Cluster {
			if c.Kept == nil || n.Floor > c.Kept.Floor || n.Floor == c.Kept.Floor && n.Time > c.Kept.Time {
				c.Kept = &n
			}
			return nil
		}
	case strings.HasPrefix(name, GapPrefix):
		if n, err := ParseGap(name); err == nil && n.Cluster == c.Cluster {
			c.Gaps = append(c.Gaps, n)
			return nil
		}
	}
	c.Foreign++
	return nil
}

// Sort sorts all that was added.
func (c *Catalog) Sort() {
	slices.SortFunc(c.Bases, func(a, b Base) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Time, b.Time), slices.Compare(a.Hash[:], b.Hash[:]))
	})
	slices.SortFunc(c.Segments, func(a, b Stored) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.End.Index, b.End.Index), cmp.Compare(a.Time, b.Time),
			slices.Compare(a.Hash[:], b.Hash[:]))
	})
	slices.SortFunc(c.Gaps, func(a, b GapName) int {
		return cmp.Or(cmp.Compare(a.After, b.After), cmp.Compare(a.Time, b.Time))
	})
}

// FirstFrom returns the place, in a catalog that is sorted, of the first segment that begins with an entry or after it.
func (c *Catalog) FirstFrom(index consensus.Index) int {
	i, _ := slices.BinarySearchFunc(c.Segments, index, func(s Stored, index consensus.Index) int {
		return cmp.Compare(s.First, index)
	})
	return i
}

// Head is a point with its epoch and its moment.
type Head struct {
	Epoch uint64
	Point
	Moment
	Set Set // whose label the point's sum is; zero: it is the sum
}

// is reports whether two heads are one state, as far as names tell: the labels of two sets of recipients cannot be compared.
func (h *Head) is(other *Head) bool {
	return h.Point == other.Point || h.Set != other.Set && h.Epoch == other.Epoch && h.Index == other.Index
}

// later orders heads: the cluster went on in the last epoch.
func (h *Head) later(than *Head) bool {
	return cmp.Or(cmp.Compare(h.Epoch, than.Epoch), cmp.Compare(h.Index, than.Index), cmp.Compare(than.Time, h.Time)) > 0
}

// Sealed reports whether the place has objects that are encrypted to recipients.
func (c *Catalog) Sealed() bool {
	return slices.ContainsFunc(c.Bases, func(b Base) bool { return b.Set != 0 }) ||
		slices.ContainsFunc(c.Segments, func(s Stored) bool { return s.Set != 0 })
}

// Newest returns the last point of all, whether or not it can be restored; false if there is none.
func (c *Catalog) Newest() (newest Head, found bool) {
	for i := range c.Bases {
		if h := c.Bases[i].Head(); !found || h.later(&newest) {
			newest, found = h, true
		}
	}
	for i := range c.Segments {
		if h := c.Segments[i].Head(); !found || h.later(&newest) {
			newest, found = h, true
		}
	}
	return newest, found
}

// Head is the state of a base.
func (b *BaseName) Head() Head { return Head{b.Epoch, b.Point, b.Moment, b.Set} }

// Head is the state after a segment.
func (s *SegmentName) Head() Head { return Head{s.Epoch, s.End, s.Moment, s.Set} }

// Forks counts indexes at which the place has points with different sums: two histories, as after a recovery that lost entries.
func (c *Catalog) Forks() (forks int) {
	type at struct {
		index consensus.Index
		set   Set // the sums of two sets of recipients cannot be compared
	}
	sums := map[at]uint64{}
	note := func(p Point, set Set) {
		if before, found := sums[at{p.Index, set}]; found && before != p.Sum {
			forks++
		}
		sums[at{p.Index, set}] = p.Sum
	}
	for i := range c.Bases {
		note(c.Bases[i].Point, c.Bases[i].Set)
	}
	for i := range c.Segments {
		note(c.Segments[i].End, c.Segments[i].Set)
	}
	return forks
}

// linked is a Link as a key.
type linked struct {
	segment Hash
	at      Point
}

// reading tells through which ends of other segments a segment goes, of those in the clear: names of encrypted ones have no
// sums. Else each of the segments that somebody made up beside it would take another plan to find out.
type reading struct {
	points []Point         // the later ones first
	down   consensus.Index // nothing is known of ends before this one
}
