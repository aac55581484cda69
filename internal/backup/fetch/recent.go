package fetch

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Bounds of what Recent holds. The names of a kind come in the order of the log.
const (
	recentBases  = 8 // with the log after them, if not more are asked for
	mostBases    = 1024
	mostSegments = 1 << 17
	mostPages    = 4096
	// nameBytes is what a name takes in memory.
	nameBytes = 128
)

// LeastSegments is how many segments Recent returns if it is given no bound by memory: 3 MiB. A base has fewer behind it
// (ship.DefaultBaseAfter): a member that took over could not continue what it does not see.
const LeastSegments = 24 << 10

// LeastNameBytes is the memory of LeastSegments.
const LeastNameBytes = LeastSegments * nameBytes

// segmentsIn is how many segments are listed in so many bytes of memory; zero: LeastSegments.
func segmentsIn(memory int64) int {
	if memory == 0 {
		return LeastSegments
	}
	return int(min(memory/nameBytes, mostSegments))
}

// Window says what Recent and Marks list of a place. Names that tell of a later entry than Most, or of a later epoch, are left
// out: there is none yet, and they would hide the others.
type Window struct {
	Cluster consensus.ClusterID
	Epoch   uint64
	Most    consensus.Index
	// From is the hash of a base from whose entry on Recent lists all, if it is among the last 1024.
	From backup.Hash
	// Known reports whether members made the base with a hash. The others, which anybody may have put there, are listed beside
	// those, and take no place of them. Nil: all count; so they do if it is true of none.
	Known func(backup.Hash) bool
	// Memory bounds the segments that Recent lists, in bytes; zero: LeastSegments.
	Memory int64
}

// Recent lists what a place has of the end of a cluster's history: the last bases, at least those from a base on (Window.From),
// and the log after them: as many of the last segments as there is memory for, 131,072 at most. It is what a member needs that
// ships or proves, whatever else the place has, or is filled with. It has no notes of gaps (Noted). The catalog says if
// segments were left out for a bound (Cut).
func Recent(ctx context.Context, store objects.Store, w Window) (*backup.Catalog, error) {
	c, segments := &backup.Catalog{Cluster: w.Cluster}, segmentsIn(w.Memory)
	l := lister{store, c, mostPages, w.passes}
	if err := l.list(ctx, backup.BasePrefix, "", func() { w.lastBases(c) }); err != nil {
		return nil, err
	}
	after := ""
	if len(c.Bases) > 0 {
		var first int
		first, after = w.begin(c.Bases)
		c.Bases = slices.Clone(c.Bases[first:])
	}
	err := l.list(ctx, backup.LogPrefix, after, func() {
		cut := false
		c.Segments, cut = last(c.Segments, segments)
		c.Cut = c.Cut || cut
	})
	if err != nil {
		return nil, err
	}
	if err := l.list(ctx, backup.KeptPrefix, "", func() {}); err != nil {
		return nil, err
	}
	if c.Sort(); c.Cut { // nothing leads on from a base before the first segment
		first := c.Segments[0].First
		c.Bases = slices.DeleteFunc(c.Bases, func(b backup.Base) bool { return b.Index+1 < first })
	}
	return c, nil
}

// begin returns the number of the first of the bases that are listed with the log after them, and the name behind which that is
// listed. The bases are in the order of their names.
func (w *Window) begin(bases []backup.Base) (first int, after string) {
	var counted []int // that members made; all if none of these is there
	for _, known := range []func(backup.Hash) bool{w.known, func(backup.Hash) bool { return true }} {
		for i := range bases {
			if known(bases[i].Hash) {
				counted = append(counted, i)
			}
		}
		if len(counted) > 0 {
			break
		}
	}
	n := max(len(counted)-recentBases, 0)
	if at := slices.IndexFunc(counted, func(i int) bool { return bases[i].Hash == w.From }); at >= 0 {
		for at > 0 && bases[counted[at-1]].Index == bases[counted[at]].Index { // another member made one
			at--
		}
		n = min(n, at)
	}
	var before *backup.Base
	if n > 0 {
		before = &bases[counted[n-1]]
	}
	return counted[n], logAfter(&bases[counted[n]], before)
}

// logAfter is the name behind which all segments come that lead on from a base: one may begin before it, but not before the
// base before it, if that is known, and no segment has more than MaxItems entries.
func logAfter(base, before *backup.Base) string {
	epoch, index := base.Epoch, max(base.Index, backup.MaxItems)-backup.MaxItems
	if before != nil && (before.Epoch < epoch || before.Index > index) {
		epoch, index = before.Epoch, before.Index
	}
	return fmt.Sprintf("%s%016x/%016x-%016x", backup.LogPrefix, uint64(base.Cluster), epoch, uint64(index))
}

func (w *Window) known(h backup.Hash) bool { return w.Known == nil || w.Known(h) }

// lastBases cuts bases to the last ones that members made, and as many others.
func (w *Window) lastBases(c *backup.Catalog) {
	many := map[bool]int{} // of those that members made, and of the others
	for i := range c.Bases {
		many[w.known(c.Bases[i].Hash)]++
	}
	c.Bases = slices.DeleteFunc(c.Bases, func(b backup.Base) bool {
		known := w.known(b.Hash)
		many[known]--
		return many[known] >= mostBases
	})
}

// passes reports whether a name tells of nothing that there is not yet.
func (w *Window) passes(name string) bool {
	index, epoch := consensus.Index(0), uint64(0)
	if n, err := backup.ParseBase(name); err == nil {
		index, epoch = n.Index, n.Epoch
	} else if n, err := backup.ParseSegment(name); err == nil {
		index, epoch = n.End.Index, n.Epoch
	} else if n, err := backup.ParseKept(name); err == nil {
		index = n.Floor
	}
	return index <= w.Most && epoch <= w.Epoch
}

// last cuts a list to its last elements. One that grows gets room for all that it may have and a page, once: append would hold
// twice as much for a moment.
func last[T any](all []T, most int) (kept []T, cut bool) {
	if len(all) >= objects.MaxList {
		all = slices.Grow(all, max(0, most+objects.MaxList-len(all)))
	}
	if len(all) <= most {
		return all, false
	}
	return all[:copy(all, all[len(all)-most:])], true
}
