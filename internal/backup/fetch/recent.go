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
	mostNotes    = 1024
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

// Recent lists what a place has of the end of a cluster's history: the last bases, at least those from the base with the given
// hash on if it is among the last 1024, and the log after them: as many of the last segments as have so many bytes of memory
// (24,576 where that is zero), 131,072 at most. It is what a member needs that ships or proves, whatever else the place has, or
// is filled with. Names that tell of a later entry than most, or of a later epoch, are left out: there is none yet, and they
// would hide the others. The catalog says if segments, or notes of gaps, were left out for a bound (Cut).
func Recent(
	ctx context.Context, store objects.Store, cluster consensus.ClusterID, epoch uint64, from backup.Hash,
	most consensus.Index, memory int64,
) (*backup.Catalog, error) {
	c, segments := &backup.Catalog{Cluster: cluster}, segmentsIn(memory)
	list := func(prefix, after string, cut func()) error {
		return list(ctx, store, c, prefix, after, mostPages, func() { leaveOut(c, most); leaveEpochs(c, epoch); cut() })
	}
	err := list(backup.BasePrefix, "", func() { c.Bases, _ = last(c.Bases, mostBases) })
	if err != nil {
		return nil, err
	}
	after := ""
	if n := len(c.Bases); n > 0 {
		first := max(n-recentBases, 0)
		if at := slices.IndexFunc(c.Bases, func(b backup.Base) bool { return b.Hash == from }); at >= 0 {
			first = min(first, at)
		}
		// A segment may begin before a base that it leads to, but not before the base before that.
		if first > 0 {
			begin := &c.Bases[first-1]
			after = fmt.Sprintf("%s%016x/%016x-%016x", backup.LogPrefix, uint64(cluster), begin.Epoch, uint64(begin.Index))
		}
		c.Bases = slices.Clone(c.Bases[first:])
	}
	gapsCut := false
	err = list(backup.LogPrefix, after, func() {
		cut := false
		c.Segments, cut = last(c.Segments, segments)
		c.Cut = c.Cut || cut
	})
	if err != nil {
		return nil, err
	}
	err = list(backup.GapPrefix, "", func() {
		cut := false
		c.Gaps, cut = last(c.Gaps, mostNotes)
		gapsCut = gapsCut || cut
	})
	if err != nil {
		return nil, err
	}
	if err := list(backup.KeptPrefix, "", func() {}); err != nil {
		return nil, err
	}
	if c.Sort(); c.Cut { // nothing leads on from a base before the first segment
		first := c.Segments[0].First
		c.Bases = slices.DeleteFunc(c.Bases, func(b backup.Base) bool { return b.Index+1 < first })
	}
	c.Cut = c.Cut || gapsCut
	return c, nil
}

// leaveOut leaves out what is of later entries than most.
func leaveOut(c *backup.Catalog, most consensus.Index) {
	c.Bases = slices.DeleteFunc(c.Bases, func(b backup.Base) bool { return b.Index > most })
	c.Segments = slices.DeleteFunc(c.Segments, func(s backup.Stored) bool { return s.End.Index > most })
	c.Gaps = slices.DeleteFunc(c.Gaps, func(g backup.GapName) bool { return g.After > most })
}

// leaveEpochs leaves out what is of epochs later than one.
func leaveEpochs(c *backup.Catalog, epoch uint64) {
	c.Bases = slices.DeleteFunc(c.Bases, func(b backup.Base) bool { return b.Epoch > epoch })
	c.Segments = slices.DeleteFunc(c.Segments, func(s backup.Stored) bool { return s.Epoch > epoch })
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
