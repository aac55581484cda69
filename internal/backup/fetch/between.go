package fetch

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Marks lists the bases of a cluster, the last 1024, and notes of what retention removed.
func Marks(ctx context.Context, store objects.Store, w Window) (*backup.Catalog, error) {
	c := &backup.Catalog{Cluster: w.Cluster}
	l := lister{store, c, mostPages, w.passes}
	if err := l.list(ctx, backup.BasePrefix, "", func() { w.lastBases(c) }); err != nil {
		return nil, err
	}
	if err := l.list(ctx, backup.KeptPrefix, "", func() {}); err != nil {
		return nil, err
	}
	c.Sort()
	return c, nil
}

// Noted returns the note of a gap in which an entry lies; nil: the place has none. It holds one, however many there are.
func Noted(
	ctx context.Context, store objects.Store, cluster consensus.ClusterID, index consensus.Index,
) (note *backup.GapName, err error) {
	// names of gaps that begin later follow
	end := fmt.Sprintf("%s%016x/%016x", backup.GapPrefix, uint64(cluster), uint64(index))
	l := lister{through{store, end}, &backup.Catalog{Cluster: cluster}, mostPages, func(name string) bool {
		if g, err := backup.ParseGap(name); err == nil && g.After < index && index < g.Until {
			note = &g
		}
		return false
	}}
	err = l.list(ctx, backup.GapPrefix, "", func() {})
	return note, err
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
