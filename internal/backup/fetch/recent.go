package fetch

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Bounds of what Recent holds: some 128 bytes each. The names of a kind come in the order of the log.
const (
	recentBases  = 8 // with the log after them, if not more are asked for
	mostBases    = 4096
	mostSegments = 1 << 17
	mostNotes    = 1024
	grown        = 2 // a list that has grown to so many times its bound is cut
	mostPages    = 4096
)

// Recent lists what a place has of the end of a cluster's history: the last bases, at least those from the base with the given
// hash on if it is among the last 4096, and the log after them, of which the last 131,072 segments. It is what a member needs
// that ships or proves, whatever else the place has, or is filled with. Names that tell of a later entry than most are left
// out: there is none yet, and they would hide the others. The catalog says if segments, or notes of gaps, were left out for a
// bound (Cut).
func Recent(
	ctx context.Context, store objects.Store, cluster consensus.ClusterID, from backup.Hash, most consensus.Index,
) (*backup.Catalog, error) {
	c := &backup.Catalog{Cluster: cluster}
	list := func(prefix, after string, cut func()) error {
		return list(ctx, store, c, prefix, after, mostPages, func() { leaveOut(c, most); cut() })
	}
	segments := func(times int) {
		c.Cut = c.Cut || len(c.Segments) > mostSegments*times
		c.Segments = last(c.Segments, mostSegments, times)
	}
	gaps := func(times int) {
		c.Cut = c.Cut || len(c.Gaps) > mostNotes*times
		c.Gaps = last(c.Gaps, mostNotes, times)
	}
	err := list(backup.BasePrefix, "", func() { c.Bases = last(c.Bases, mostBases, grown) })
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
		begin := &c.Bases[max(first-1, 0)]
		after = fmt.Sprintf("%s%016x/%016x-%016x", backup.LogPrefix, uint64(cluster), begin.Epoch, uint64(begin.Index))
		c.Bases = slices.Clone(c.Bases[first:])
	}
	err = list(backup.LogPrefix, after, func() { segments(grown) })
	if err != nil {
		return nil, err
	}
	err = list(backup.GapPrefix, "", func() { gaps(grown) })
	if err != nil {
		return nil, err
	}
	segments(1)
	gaps(1)
	if err := list(backup.KeptPrefix, "", func() {}); err != nil {
		return nil, err
	}
	c.Sort()
	return c, nil
}

// leaveOut leaves out what is of later entries than most.
func leaveOut(c *backup.Catalog, most consensus.Index) {
	c.Bases = slices.DeleteFunc(c.Bases, func(b backup.Base) bool { return b.Index > most })
	c.Segments = slices.DeleteFunc(c.Segments, func(s backup.Stored) bool { return s.End.Index > most })
	c.Gaps = slices.DeleteFunc(c.Gaps, func(g backup.GapName) bool { return g.After > most })
}

// last cuts a list that has more than so many times most elements to its last ones.
func last[T any](all []T, most, times int) []T {
	if len(all) <= most*times {
		return all
	}
	return slices.Clone(all[len(all)-most:])
}
