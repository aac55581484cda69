package shell

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/dice"
)

// applier applies entries, and puts snapshots in place of the store.
type applier struct {
	*Life
	data      *datadir.Data
	node      *node.Node
	snapshots *Snapshots
	leases    *Leases
	put       func(inputs ...raft.Input)
	altered   func([]consensus.Entry) []consensus.Entry // a negative control: what is applied instead of a batch
	queue     []work
	busy      bool
}

// work is entries to apply, or a snapshot to install.
type work struct {
	entries []consensus.Entry
	install *consensus.SnapshotMeta
}

// do leaves work.
func (a *applier) do(w work) {
	a.queue = append(a.queue, w)
	a.begin()
}

func (a *applier) begin() {
	if a.busy || len(a.queue) == 0 {
		return
	}
	a.busy = true
	a.After(dice.Exponential(a.Rng, a.Pace.Apply), a.run)
}

// run does what waited when it began: runs of entries in batches of a drawn size, snapshots in between.
func (a *applier) run() {
	a.busy = false
	todo := a.queue
	a.queue = nil
	var run []consensus.Entry
	for _, w := range todo {
		if w.install == nil {
			run = append(run, w.entries...)
			continue
		}
		if !a.apply(run) || !a.install(*w.install) {
			return
		}
		run = nil
	}
	if a.apply(run) {
		a.begin()
	}
}

func (a *applier) apply(entries []consensus.Entry) bool {
	for len(entries) > 0 {
		batch := entries[:min(len(entries), 1+a.Rng.IntN(64))]
		entries = entries[len(batch):]
		given := batch
		if a.altered != nil {
			given = a.altered(batch)
		}
		results, err := a.applyFor(given)
		if err != nil {
			a.Fail(err)
			return false
		}
		last := batch[len(batch)-1].Index
		a.Note(diary.Apply, uint64(last), uint64(results[len(results)-1].Revision), uint64(len(batch)), nil)
		a.Suite.Applied(a.ID, batch, results)
		a.chained(batch[0].Index, last)
		a.Suite.Published(a.ID, last, a.data.Machine.Store().Revision())
		a.Counts.Applied += uint64(len(batch))
		a.node.Resolve(batch, results)
		a.put(raft.Applied{Index: last, Revision: uint64(a.data.Machine.Store().Revision())})
	}
	return true
}

// chained tells the checkers the chain at each index of a batch.
func (a *applier) chained(first, last consensus.Index) {
	for index := first; index <= last; index++ {
		if mark, known := a.data.Machine.ChainAt(index); known {
			a.Suite.Chained(a.ID, mark.Index, mark.Sum)
		}
	}
}

// applyFor applies as a member does that answers everybody, and reads again what a repeated entry left out. What is
// gone with its history stays out.
func (a *applier) applyFor(batch []consensus.Entry) ([]kv.Result, error) {
	results, err := a.data.Machine.ApplyFor(batch, func(consensus.ProposalID) kv.Account { return unlimited{} })
	for i := range results {
		if command, err := kv.DecodeCommand(batch[i].Payload); err == nil {
			a.recall(&command, &results[i])
		}
	}
	return results, err
}

func (a *applier) recall(command *kv.Command, result *kv.Result) {
	if err := a.data.Machine.Recall(command, result, unlimited{}); err != nil && !errors.Is(err, kv.ErrResultGone) {
		a.Fail(err)
	}
}

// unlimited is memory without bound.
type unlimited struct{}

func (unlimited) Take(int) error { return nil }
func (unlimited) Release()       {}

// install puts the received snapshot in place of the store.
func (a *applier) install(meta consensus.SnapshotMeta) bool {
	dir, ok := a.snapshots.take(meta.Position)
	if !ok {
		a.put(raft.SnapshotInstalled{Meta: meta, Failed: true})
		return true
	}
	switch err := a.data.Replace(meta, dir); {
	case errors.Is(err, datadir.ErrSwitch):
		a.Fail(fmt.Errorf("install %v: %w", meta.Position, err))
		return false
	case err != nil:
		if !a.blames() {
			a.Suite.Report("operating-error", err.Error())
		}
		a.put(raft.SnapshotInstalled{Meta: meta, Failed: true})
		return true
	}
	a.Counts.Snapshots++
	a.Note(diary.Snapshot, uint64(meta.Position.Index), uint64(meta.Position.Term), 0, nil)
	a.chained(meta.Position.Index, meta.Position.Index)
	machine := a.data.Machine
	a.Suite.Published(a.ID, meta.Position.Index, machine.Store().Revision())
	if a.leases.leads {
		a.leases.resume()
	}
	if err := a.node.Restored(meta, machine); err != nil {
		a.Fail(err)
		return false
	}
	revision := uint64(machine.Store().Revision())
	a.put(raft.SnapshotInstalled{Meta: meta, Tombstones: a.data.Tombstones(), Revision: revision})
	return true
}
