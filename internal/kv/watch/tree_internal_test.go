package watch

import (
	"fmt"
	"slices"
	"testing"
)

// Ensure that a client which knows how the tree draws, but not its seed, cannot make a list of it: then each new watch, and
// each put, would visit all watches.
func TestDirectory_hostileOrder(t *testing.T) {
	const ranges = 4000
	guess := tree{}
	drawn := make([]uint64, ranges)
	for i := range drawn {
		drawn[i] = guess.next()
	}
	ranks := slices.Sorted(slices.Values(drawn))
	d := newDirectory()
	for i := range drawn {
		rank, _ := slices.BinarySearch(ranks, drawn[i])
		d.of(interest{start: fmt.Sprintf("k%06d", rank), end: "l"})
	}
	var depth func(n *node) int
	depth = func(n *node) int {
		if n == nil {
			return 0
		}
		return 1 + max(depth(n.left), depth(n.right))
	}
	if got := depth(d.ranges.root); got > 100 { // about 30 is likely
		t.Errorf("%d ranges are %d deep", ranges, got)
	}
}
