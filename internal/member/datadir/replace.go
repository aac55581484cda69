package datadir

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

// A snapshot takes the place of the store in steps. Until the switch the old generation serves, and a failure loses nothing.
// The switch is one small file. The later steps only remove files and records that are not used any more.
//
//	step                                                        after a crash or an error here
//	1 check the snapshot where it was received, for reading     the old generation goes on
//	2 move it to its place, open it, make it the member's own   the old generation goes on
//	3 switch: CURRENT names it and its position                 the one or the other, by CURRENT
//	4 the log begins after the position (by the core)           at the next start
//	5 CURRENT forgets the position                              at the next start
//	6 remove the old generation after its last reader           at the next start

// Check opens a received snapshot read-only and returns an error if it differs from its announcement, or if this version cannot
// read it. The current store goes on meanwhile.
func (d *Data) Check(meta consensus.SnapshotMeta, dir string) (err error) {
	view := d.Options.FS.PathJoin(d.Options.FS.PathDir(dir), d.Options.FS.PathBase(dir)+"-check")
	defer func() { err = errors.Join(err, d.Options.FS.RemoveAll(view)) }()
	if err := snapshot.Clone(d.Options.FS, dir, view); err != nil {
		return err
	}
	store, err := d.Options.View(view)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	machine, err := apply.Open(store, apply.Options{Level: d.Options.Apply.Level, MostLeases: d.Options.Apply.MostLeases})
	if err != nil {
		return err
	}
	return d.checkAnnounced(meta, machine)
}

func (d *Data) checkAnnounced(meta consensus.SnapshotMeta, machine *apply.Machine) error {
	if got := machine.Applied(); got != meta.Position {
		return fmt.Errorf("datadir: the snapshot holds %v, announced was %v", got, meta.Position)
	}
	if got := machine.Cluster(); got != d.Identity.Cluster {
		return fmt.Errorf("datadir: the snapshot is of cluster %v, this member of %v", got, d.Identity.Cluster)
	}
	return nil
}

// Replace is Install and Retire in one.
func (d *Data) Replace(meta consensus.SnapshotMeta, dir string) error {
	old, err := d.Install(meta, dir)
	if err == nil {
		d.Retire(old)
	}
	return err
}

// Install makes the snapshot in dir the current store and returns the generation that it replaces, which the caller must
// Retire. After an error other than ErrSwitch the old generation goes on unchanged.
func (d *Data) Install(meta consensus.SnapshotMeta, dir string) (old *Generation, err error) {
	number := d.Number + 1
	next, err := d.stage(meta, dir, number)
	if err != nil {
		return nil, errors.Join(err, snapshot.Remove(d.Options.FS, d.Options.Dir, number))
	}
	current := snapshot.Current{Generation: number, Installed: meta.Position}
	if err := d.switchTo(current); err != nil {
		next.giveUp(nil)
		return nil, fmt.Errorf("%w: %w", ErrSwitch, errors.Join(err, next.err))
	}
	old = d.Generation
	old.Machine.Detach()
	next.Machine.Attach(old.Machine.Hub())
	d.Generation = next
	return old, nil
}

func (d *Data) switchTo(current snapshot.Current) error {
	d.currentMu.Lock()
	defer d.currentMu.Unlock()
	if err := snapshot.Switch(d.Options.FS, d.Options.Dir, current); err != nil {
		return err
	}
	d.current = current
	return nil
}

// stage moves the snapshot to its place, opens it, and makes this member its owner.
func (d *Data) stage(meta consensus.SnapshotMeta, dir string, number uint64) (*Generation, error) {
	if err := snapshot.Stage(d.Options.FS, d.Options.Dir, dir, number); err != nil {
		return nil, err
	}
	options := d.Options.Apply
	options.Hub = nil // the hub of the current store stays in use
	next, err := d.openGeneration(number, options)
	if err != nil {
		return nil, err
	}
	if err = d.checkAnnounced(meta, next.Machine); err == nil {
		err = next.Machine.SetOwner(d.Identity)
	}
	if err != nil {
		next.giveUp(nil)
		return nil, errors.Join(err, next.err)
	}
	return next, nil
}

// Retire closes a replaced generation once the last reader has released it, and then removes its files.
func (d *Data) Retire(old *Generation) {
	d.retired.Add(1)
	old.giveUp(func(g *Generation, err error) {
		defer d.retired.Done()
		if err = errors.Join(err, snapshot.Remove(d.Options.FS, d.Options.Dir, g.Number)); err != nil {
			d.Options.Logger.Warn("could not remove an old store; the next start does", "generation", g.Number, "err", err)
		}
	})
}

// Persisted must be called when batches are durable in the log. Once one of them has reset the log to the position of the last
// installation, the store is not ahead of the log any more: from then on Open refuses an older log in its place. Any goroutine
// may call it.
func (d *Data) Persisted(batches []wal.Batch) error {
	for i := range batches {
		if batches[i].Reset == nil {
			continue
		}
		if err := d.logTookOver(batches[i].Reset.Position); err != nil {
			return err
		}
	}
	return nil
}

func (d *Data) logTookOver(position consensus.Position) error {
	d.currentMu.Lock()
	defer d.currentMu.Unlock()
	if position == (consensus.Position{}) || d.current.Installed != position {
		return nil // no snapshot is installed, or another one
	}
	current := snapshot.Current{Generation: d.current.Generation}
	if err := snapshot.Switch(d.Options.FS, d.Options.Dir, current); err != nil {
		return err
	}
	d.current = current
	return nil
}
