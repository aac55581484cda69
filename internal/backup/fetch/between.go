package fetch

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Marks lists the bases of a cluster, the last 1024, and notes, without the log. Names that tell of a later entry than most, or
// of a later epoch, are left out.
func Marks(
	ctx context.Context, store objects.Store, cluster consensus.ClusterID, epoch uint64, most consensus.Index,
) (*backup.Catalog, error) {
	c := &backup.Catalog{Cluster: cluster}
	for _, prefix := range []string{backup.BasePrefix, backup.GapPrefix, backup.KeptPrefix} {
		err := list(ctx, store, c, prefix, "", mostPages, func() {
			leaveOut(c, most)
			leaveEpochs(c, epoch)
			c.Bases, _ = last(c.Bases, mostBases)
			c.Gaps, _ = last(c.Gaps, mostNotes)
		})
		if err != nil {
			return nil, err
		}
	}
	c.Sort()
	return c, nil
}

// Between lists the segments that have entries after a base up to a later one, as many as Recent would for so much memory; cut:
// there are more. begin is a base before from, or from itself if there is none: no segment that leads on from a base begins
// before the base before it.
func Between(
	ctx context.Context, store objects.Store, begin, from, to *backup.Base, memory int64,
) (segments []backup.Stored, cut bool, err error) {
	c, most := &backup.Catalog{Cluster: to.Cluster}, segmentsIn(memory)
	name := func(epoch uint64, first consensus.Index) string {
		return fmt.Sprintf("%s%016x/%016x-%016x", backup.LogPrefix, uint64(to.Cluster), epoch, uint64(first))
	}
	within := through{store, name(to.Epoch, to.Index+1)}
	after := name(begin.Epoch, begin.Index)
	if begin.Index >= from.Index { // a segment that leads on from the first base may begin before it
		after = name(begin.Epoch, 0)
	}
	err = list(ctx, within, c, backup.LogPrefix, after, mostPages, func() {
		c.Segments = slices.DeleteFunc(c.Segments, func(s backup.Stored) bool {
			return s.End.Index <= from.Index || s.First > to.Index
		})
		if len(c.Segments) > most {
			c.Segments, cut = c.Segments[:most], true
		} else if len(c.Segments) >= objects.MaxList { // once: append would hold twice as much for a moment
			c.Segments = slices.Grow(c.Segments, most+objects.MaxList-len(c.Segments))
		}
	})
	c.Sort()
	return c.Segments, cut, err
}
