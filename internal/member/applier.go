package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/expiry"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/snapshots"
	"github.com/quorate/quorate/internal/upkeep"
	"github.com/quorate/quorate/internal/watchdog"
)

// applyRequest is entries to apply, or a snapshot to put in place of the store, or that this member leads in a term, or
// leads no more.
type applyRequest struct {
	entries []consensus.Entry
	install *consensus.SnapshotMeta
	lead    *leadership
}

type leadership struct {
	leads bool
	term  consensus.Term
}

// These bound one engine batch, so that readers see progress and memory stays bounded also when a long log is replayed.
const (
	maxApplyEntries = 1024
	maxApplyBytes   = 16 << 20
)

// fitting returns how many of entries go into one batch, at least one.
func fitting(entries []consensus.Entry) int {
	n, size := 1, entries[0].SizeBytes()
	for n < min(len(entries), maxApplyEntries) {
		if size += entries[n].SizeBytes(); size > maxApplyBytes {
			break
		}
		n++
	}
	return n
}

// applier owns the state machine: it applies entries in order, and puts snapshots in place of the store. All of it but
// the queue belongs to the goroutine that runs it.
type applier struct {
	queue    queue[applyRequest]
	data     *datadir.Data
	stores   *datadir.Stores
	received *snapshots.Receiver
	leases   *expiry.Revoker
	retainer *upkeep.Retainer
	scrubber *upkeep.Scrubber
	task     *watchdog.Task
	clock    env.Clock
	logger   *slog.Logger
	observe  func(took time.Duration) // of each batch; may be nil

	// room gives room for the answer to a proposal that somebody waits for here.
	room func(id consensus.ProposalID) kv.Room
	// applied takes note of a batch that was applied, restored of a snapshot that has replaced the store.
	applied    func(batch []consensus.Entry, results []kv.Result)
	restored   func(meta consensus.SnapshotMeta, machine *apply.Machine) error
	put        func(inputs ...raft.Input) // to the core
	background func(f func())
}

// newApplier ties the applier to what it uses and to whom it tells what it does.
func newApplier(
	o *Options, dog *watchdog.Watchdog, stores *datadir.Stores, received *snapshots.Receiver, leases *expiry.Revoker,
	scrubber *upkeep.Scrubber, life *lifecycle, put func(...raft.Input), ports *applyPorts,
) *applier {
	a := &applier{
		data: o.Data, stores: stores, received: received, leases: leases, scrubber: scrubber,
		retainer: upkeep.NewRetainer(upkeep.RetainerOptions{
			Retention:  o.Retention,
			Compact:    func(to consensus.Index) { put(raft.Compact{Index: to}) },
			Background: life.background,
			Fail:       life.fail,
		}),
		task: dog.Watch("applying entries"), clock: o.Clock, logger: o.Logger, observe: o.Applied,
		room: ports.room, applied: ports.applied, restored: ports.restored, put: put, background: life.background,
	}
	a.queue.init()
	return a
}

// run applies what is queued until ctx ends.
func (a *applier) run(ctx context.Context) error {
	var spare []applyRequest
	var run []consensus.Entry
	for {
		select {
		case <-a.queue.signal:
		case <-ctx.Done():
			return nil
		}
		requests := a.queue.take(spare)
		spare = requests
		run = run[:0]
		for _, request := range requests {
			if request.install == nil && request.lead == nil {
				run = append(run, request.entries...)
				continue
			}
			if err := a.applyRun(run); err != nil {
				return err
			}
			run = run[:0]
			if request.lead != nil {
				a.leases.Lead(a.data.Machine, request.lead.leads, request.lead.term)
				continue
			}
			if err := a.install(*request.install); err != nil {
				return err
			}
		}
		if err := a.applyRun(run); err != nil {
			return err
		}
		clear(run)
	}
}

// applyRun applies entries in batches, completes who waits for them, and tells the core.
func (a *applier) applyRun(entries []consensus.Entry) error {
	defer a.task.Idle()
	for len(entries) > 0 {
		a.task.Begin()
		batch := entries[:fitting(entries)]
		entries = entries[len(batch):]
		begun := a.clock.Now()
		results, err := a.data.Machine.ApplyFor(batch, a.room)
		if err != nil {
			return err
		}
		if a.observe != nil {
			a.observe(a.clock.Now().Sub(begun))
		}
		a.applied(batch, results)
		last := batch[len(batch)-1].Index
		// The store's revision, not that of the last result: a second entry of a proposal has the result of the first.
		a.put(raft.Applied{Index: last, Revision: uint64(a.data.Machine.Store().Revision())})
		if err := a.retainer.Applied(a.data.Generation, batch); err != nil {
			return err
		}
		if err := a.received.Discard(last); err != nil {
			return err
		}
		a.scrubber.Consider(a.data.Machine.Store().CompactRevision())
	}
	return nil
}

// install puts a received snapshot in place of the store.
func (a *applier) install(meta consensus.SnapshotMeta) error {
	dir, ok := a.received.Take(meta.Mark)
	if !ok {
		a.put(raft.SnapshotInstalled{Meta: meta, Failed: true})
		return nil
	}
	old, err := a.data.Install(meta, dir)
	if errors.Is(err, datadir.ErrSwitch) {
		return fmt.Errorf("install snapshot %v: %w", meta.Mark, err)
	}
	if err != nil {
		a.logger.Error("could not install a snapshot: the present store serves on", "index",
			uint64(meta.Mark.Index), "err", err)
		a.put(raft.SnapshotInstalled{Meta: meta, Failed: true})
		return nil
	}
	machine := a.data.Machine
	a.leases.Continue(machine)
	a.stores.Set(a.data.Generation)
	a.background(func() { a.data.Retire(old) })
	a.retainer.Replaced()
	a.scrubber.Wake() // the new store may be less scrubbed than the old one was
	if err := a.restored(meta, machine); err != nil {
		return err
	}
	a.put(raft.SnapshotInstalled{
		Meta: meta, Tombstones: a.data.Tombstones(), Revision: uint64(machine.Store().Revision()),
	})
	a.logger.Info("installed a snapshot", "index", uint64(meta.Mark.Index), "term", uint64(meta.Mark.Term))
	return nil
}
