package fetch

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Marks lists the bases of a cluster, the last 1024, and notes, without the log. The catalog says if notes of gaps were left
// out for a bound (Cut): a hole may be one of theirs.
func Marks(ctx context.Context, store objects.Store, w Window) (*backup.Catalog, error) {
	c := &backup.Catalog{Cluster: w.Cluster}
	l := lister{store, c, mostPages, w.passes}
	if err := l.list(ctx, backup.BasePrefix, "", func() { w.lastBases(c) }); err != nil {
		return nil, err
	}
	cut, err := l.notes(ctx)
	if err != nil {
		return nil, err
	}
	c.Sort()
	c.Cut = cut
	return c, nil
}

// Between lists the segments that have entries after a base up to a later one, as many as Recent would for so much memory; cut:
// there are more. before is the base before from; nil: it is not known.
func Between(
	ctx context.Context, store objects.Store, before, from, to *backup.Base, memory int64,
) (segments []backup.Stored, cut bool, err error) {
	c, most := &backup.Catalog{Cluster: to.Cluster}, segmentsIn(memory)
	end := fmt.Sprintf("%s%016x/%016x-%016x", backup.LogPrefix, uint64(to.Cluster), to.Epoch, uint64(to.Index+1))
	l := lister{through{store, end}, c, mostPages, func(name string) bool {
		s, err := backup.ParseSegment(name)
		return err == nil && s.End.Index > from.Index && s.First <= to.Index
	}}
	err = l.list(ctx, backup.LogPrefix, logAfter(from, before), func() {
		if len(c.Segments) > most {
			c.Segments, cut = c.Segments[:most], true
		} else if len(c.Segments) >= objects.MaxList { // once: append would hold twice as much for a moment
			c.Segments = slices.Grow(c.Segments, most+objects.MaxList-len(c.Segments))
		}
	})
	c.Sort()
	return c.Segments, cut, err
}
