package backup

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// order finds an edge by its last index. All that it does takes the logarithm of the number of segments, however they overlap:
// a Fenwick tree of maxima over the places of the indexes that there are.
type order struct {
	indexes []consensus.Index // sorted, each once
	edges   []int             // the last edge that ends with the index of the place; -1: none does
	highest []int             // of the tree: the highest place that has an edge, counted from 1; 0: none has
}

// orderOf returns an order for edges of the segments that are encrypted, or of the others, without any.
func orderOf(segments []Stored, sealed bool) order {
	indexes := make([]consensus.Index, 0, len(segments))
	for i := range segments {
		if s := &segments[i]; s.Set != 0 == sealed {
			indexes = append(indexes, s.End.Index)
		}
	}
	slices.Sort(indexes)
	indexes = slices.Compact(indexes)
	o := order{indexes: indexes, edges: make([]int, len(indexes)), highest: make([]int, len(indexes)+1)}
	for i := range o.edges {
		o.edges[i] = -1
	}
	return o
}

// insert returns the edge that was the last one to end with the index.
func (o *order) insert(index consensus.Index, edge int) (same int) {
	place, _ := slices.BinarySearch(o.indexes, index)
	same, o.edges[place] = o.edges[place], edge
	for i := place + 1; i < len(o.highest); i += i & -i {
		o.highest[i] = max(o.highest[i], place+1)
	}
	return same
}

// below returns the edge that ends last before an index, and where; -1: none does.
func (o *order) below(index consensus.Index) (edge int, end consensus.Index) {
	highest := 0
	place, _ := slices.BinarySearch(o.indexes, index)
	for i := place; i > 0; i -= i & -i {
		highest = max(highest, o.highest[i])
	}
	if highest == 0 {
		return -1, 0
	}
	return o.edges[highest-1], o.indexes[highest-1]
}
