package applier

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/expiry"
	"github.com/quorate/quorate/internal/member/snapshots"
	"github.com/quorate/quorate/internal/member/upkeep"
)

// ErrRemoved means that the cluster removed this member for ever.
var ErrRemoved = errors.New("the member has been permanently removed from the cluster: keep its data directory until " +
	"`quorate member list` at the others shows a cluster that is well. Take --initial-cluster out of its flags now: former " +
	"members that start together with it and with empty directories found another, empty cluster under the same id. To bring " +
	"the machine back, start it with --join PEER-URL of a member and another, empty directory")

// Work is one thing to do: entries to apply, or a snapshot to put in place of the store, or that this member leads in a term,
// or leads no more.
type Work struct {
	Entries []consensus.Entry
	Install *consensus.SnapshotMeta
	Lead    *Leadership
}

// Leadership says whether this member leads in a term.
type Leadership struct {
	Leads bool
	Term  consensus.Term
}

// These bound one engine batch, so that readers see progress and memory stays bounded also when a long log is replayed.
const (
	maxEntries = 1024
	maxBytes   = 16 << 20
)

// fitting returns how many of entries go into one batch, at least one and at most limit.
func fitting(entries []consensus.Entry, limit int) int {
	n, size := 1, entries[0].SizeBytes()
	for n < min(len(entries), limit) {
		if size += entries[n].SizeBytes(); size > maxBytes {
			break
		}
		n++
	}
	return n
}

// Options say what an Applier works on, and whom it tells.
type Options struct {
	Data      *datadir.Data
	Stores    *datadir.Stores
	Received  *snapshots.Receiver
	Leases    *expiry.Revoker
	Retainer  *upkeep.Retainer
	Compactor *upkeep.Compactor
	Logger    *slog.Logger

	// Apply lets the state machine apply a batch.
	Apply func(batch []consensus.Entry) ([]kv.Result, error)
	// Applied takes note of a batch that was applied, Restored of a snapshot that has replaced the store.
	Applied  func(batch []consensus.Entry, results []kv.Result)
	Restored func(meta consensus.SnapshotMeta, machine *apply.Machine) error
	// Put leaves inputs for the core, Background runs f beside everything else.
	Put        func(inputs ...raft.Input)
	Background func(f func())

	// MaxEntries, if set, returns how many entries may go into the next batch.
	MaxEntries func() int
	// Busy, if set, is told when a batch begins, and when no batch is left.
	Busy func(busy bool)
	// NotInstalled, if set, takes note of a snapshot that could not be installed: the store that was there serves on.
	NotInstalled func(err error)
}

// Applier owns the state machine: it applies entries in order, and puts snapshots in place of the store.
type Applier struct {
	options Options
	run     []consensus.Entry // scratch
}

// New returns an Applier.
func New(options Options) *Applier {
	if options.MaxEntries == nil {
		options.MaxEntries = func() int { return maxEntries }
	}
	if options.Busy == nil {
		options.Busy = func(bool) {}
	}
	if options.NotInstalled == nil {
		options.NotInstalled = func(error) {}
	}
	return &Applier{options: options}
}

// Do does some work in its order. Its error ends the member.
func (a *Applier) Do(work []Work) error {
	a.run = a.run[:0]
	defer func() { clear(a.run) }()
	for _, w := range work {
		if w.Install == nil && w.Lead == nil {
			a.run = append(a.run, w.Entries...)
			continue
		}
		if err := a.apply(a.run); err != nil {
			return err
		}
		a.run = a.run[:0]
		if w.Lead != nil {
			a.options.Leases.Lead(a.options.Data.Machine, w.Lead.Leads, w.Lead.Term)
			continue
		}
		if err := a.install(*w.Install); err != nil {
			return err
		}
	}
	return a.apply(a.run)
}

// apply applies entries in batches, completes who waits for them, and tells the core.
func (a *Applier) apply(entries []consensus.Entry) error {
	o := &a.options
	defer o.Busy(false)
	for len(entries) > 0 {
		o.Busy(true)
		batch := entries[:fitting(entries, o.MaxEntries())]
		entries = entries[len(batch):]
		results, err := o.Apply(batch)
		if err != nil {
			return a.because(err)
		}
		o.Applied(batch, results)
		last := batch[len(batch)-1].Index
		// The store's revision, not that of the last result: a second entry of a proposal has the result of the first.
		o.Put(raft.Applied{Index: last, Revision: uint64(o.Data.Machine.Store().Revision())})
		if err := o.Retainer.Applied(o.Data.Generation, batch); err != nil {
			return err
		}
		if err := o.Received.Discard(last); err != nil {
			return err
		}
		store := o.Data.Machine.Store()
		o.Compactor.Consider(store.CompactRevision(), store.CountsDue())
	}
	return nil
}

// because tells why entries could not be applied: a removed member that is still fed may meet a level that its build does
// not know, and the operator need not start a later build for it.
func (a *Applier) because(err error) error {
	var low *level.TooLowError
	if d := a.options.Data; errors.As(err, &low) {
		if _, removed := d.Machine.Removed(d.Identity.Member); removed {
			return ErrRemoved
		}
	}
	return err
}

// install puts a received snapshot in place of the store.
func (a *Applier) install(meta consensus.SnapshotMeta) error {
	o := &a.options
	dir, ok := o.Received.Take(meta.Position)
	if !ok {
		o.Put(raft.SnapshotInstalled{Meta: meta, Failed: true})
		return nil
	}
	installing := &o.Data.Machine.Counts().Installing
	installing.Store(true)
	defer installing.Store(false)
	old, err := o.Data.Install(meta, dir)
	if errors.Is(err, datadir.ErrSwitch) {
		return fmt.Errorf("install snapshot %v: %w", meta.Position, err)
	}
	if err != nil {
		o.Logger.Error("could not install a snapshot: the present store serves on", "index",
			uint64(meta.Position.Index), "err", err)
		o.NotInstalled(err)
		o.Put(raft.SnapshotInstalled{Meta: meta, Failed: true})
		return nil
	}
	machine := o.Data.Machine
	o.Leases.Continue(machine)
	o.Stores.Set(o.Data.Generation)
	o.Background(func() { o.Data.Retire(old) })
	o.Retainer.Replaced()
	o.Compactor.Wake() // the new store may be less compacted than the old one was
	if err := o.Restored(meta, machine); err != nil {
		return err
	}
	o.Put(raft.SnapshotInstalled{
		Meta: meta, Tombstones: o.Data.Tombstones(), Revision: uint64(machine.Store().Revision()),
	})
	o.Logger.Info("installed a snapshot", "index", uint64(meta.Position.Index), "term", uint64(meta.Position.Term))
	return nil
}
