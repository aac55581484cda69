package sim

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

// restoreSlot is the machine on which backups are restored. No member has it.
const restoreSlot = 1 << 20

// mostRestores bounds the restores of one place at the end of a world.
const mostRestores = 4

// judgeBackups restores, at the end, states that members have called restorable: the last one of each place, and some
// others. Each must have the sum that the cluster had. All other entries must lie in gaps that are noted.
func (w *World) judgeBackups() {
	if !w.run.plan.Ships || w.run.suite.Failed() {
		return
	}
	for _, at := range w.run.buckets.all {
		at.SetFaults(objectstest.Faults{})
		catalog, err := fetch.Catalog(context.Background(), at, clusterID)
		if err != nil {
			w.run.suite.Report("harness", err.Error())
			return
		}
		said := at.kept(at.floor())
		for i := range min(len(said), mostRestores) {
			one := said[len(said)-1]
			if i > 0 {
				one = said[w.run.buckets.rng.IntN(len(said))]
			}
			w.restore(at, catalog, one)
		}
		if len(said) > 0 && !w.run.buckets.late && !at.touched {
			w.judgeGaps(at, catalog, said)
		}
		w.run.counts.Segments += uint64(len(catalog.Segments))
		w.run.counts.Bases += uint64(len(catalog.Bases))
		w.run.counts.Gaps += uint64(len(catalog.Gaps))
		w.run.counts.Restored += uint64(min(len(said), mostRestores))
	}
}

// restore restores a state, and compares it with the one that the cluster had.
func (w *World) restore(at *bucket, catalog *backup.Catalog, said check.Restorable) {
	report := func(format string, args ...any) {
		w.run.suite.Report("backup", fmt.Sprintf("%s, entry %d, which member %v called restorable: %s", at.url, said.Index,
			said.By, fmt.Sprintf(format, args...)))
	}
	if c, spoiled := at.catalog(); at.touched {
		if _, err := c.Plan(backup.Target{Index: consensus.Index(said.Index)}, spoiled); err != nil {
			return // nothing that is left leads there
		}
	}
	fs := disk.New()
	open, _ := w.run.stores.On(restoreSlot, fs)
	defer w.run.stores.End(restoreSlot)
	over, _ := w.run.stores.Over(fs)
	state, err := replay.Run(context.Background(), replay.Options{Store: at, FS: over, Dir: "restored", OpenEngine: open,
		Apply: w.cluster.restores(), Open: readAll, Parallel: 1}, catalog, backup.Target{Index: consensus.Index(said.Index)})
	if err != nil {
		report("%v", err)
		return
	}
	sum, known := w.run.suite.ChainSum(state.At.Index)
	if uint64(state.At.Index) != said.Index || state.At.Revision != said.Revision || !known || state.At.Sum != sum {
		report("it is entry %d with revision %d and sum %x, and was said to have revision %d; the cluster's sum was %x",
			state.At.Index, state.At.Revision, state.At.Sum, said.Revision, sum)
	}
	if err := state.Close(); err != nil {
		w.run.suite.Report("harness", err.Error())
	}
}

// judgeGaps wants each entry from the first base that was reported to the last one that can be restored in a segment, or in a
// gap that is noted. An older base may be there: a member that was behind, and did not know yet that its turn was over, put it
// after the first one. The entries after that base are from before the backup began, and are no gap.
func (w *World) judgeGaps(at *bucket, c *backup.Catalog, said []check.Restorable) {
	first, last := consensus.Index(said[0].Base), consensus.Index(said[len(said)-1].Index)
	has := make([]bool, last+1)
	mark := func(from, to consensus.Index) {
		for i := from; i <= min(to, last); i++ {
			has[i] = true
		}
	}
	for i := range c.Segments {
		mark(c.Segments[i].First, c.Segments[i].End.Index)
	}
	for i := range c.Gaps {
		mark(c.Gaps[i].After+1, c.Gaps[i].Until-1)
	}
	if c.Kept != nil {
		first = max(first, c.Kept.Floor) // retention removed what was before
	}
	for i := first + 1; i <= last; i++ {
		if !has[i] {
			w.run.suite.Report("backup", fmt.Sprintf("%s: entry %d is in no segment, and in no gap that is noted", at.url, i))
			return
		}
	}
}
