package datadir

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/errors/oserror"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Exists reports whether there is a member's data. An unfinished creation does not count: it leaves no boots file, which is
// written last.
func Exists(options Options) (bool, error) {
	if _, err := options.FS.Stat(options.bootsFile()); err == nil {
		return true, nil
	} else if !oserror.IsNotExist(err) {
		return false, fmt.Errorf("datadir: look for data in %s: %w", options.Dir, err)
	}
	return false, nil
}

// discardedDir holds the stores of an interrupted creation while they are removed.
const discardedDir = "stores.discarded"

// Create makes the data of a new member. first is the configuration with which the cluster begins, or empty for a member that
// will learn the configuration from the log.
func Create(options Options, identity wal.Identity, first consensus.Config) error {
	restored, err := ReadRestored(options)
	if err != nil {
		return err
	}
	if restored != nil {
		return createRestored(options, restored, identity, first)
	}
	if err := discardHalfCreated(options); err != nil {
		return err
	}
	if identity.Storage.IsZero() {
		return errors.New("datadir: a data directory needs a storage id")
	}
	if err := durable.MakeDir(options.FS, options.Dir); err != nil {
		return fmt.Errorf("datadir: create data directory: %w", err)
	}
	store, err := options.OpenEngine(options.storeDir(firstGeneration))
	if err != nil {
		return err
	}
	if err = apply.Bootstrap(store, identity.Cluster, first); err == nil {
		err = apply.SetOwner(store, identity)
	}
	if err = errors.Join(err, store.Close()); err != nil {
		return fmt.Errorf("datadir: create store: %w", err)
	}
	base := consensus.Founding(first)
	return complete(options, identity, &base)
}

// complete makes the log of a member that has a store, and marks the data as complete.
func complete(options Options, identity wal.Identity, base *consensus.SnapshotMeta) error {
	log, err := wal.Create(options.WAL(), identity)
	if err != nil {
		return err
	}
	err = log.Append(wal.Batch{Reset: base})
	if err = errors.Join(err, log.Close()); err != nil {
		return err
	}
	if err := snapshot.Switch(options.FS, options.Dir, snapshot.Current{Generation: firstGeneration}); err != nil {
		return err
	}
	return writeBoots(&options, &bootsRecord{identity: identity})
}

// createRestored makes the data of a member from a restored store. It makes anew all parts that an interrupted attempt left.
func createRestored(options Options, restored *Restored, identity wal.Identity, first consensus.Config) error {
	if identity.Cluster != restored.Cluster || identity.Member != restored.Self {
		return fmt.Errorf("datadir: %s was restored for member %v of cluster %v, not for %v of %v, which gets a newer state "+
			"from the others: move it aside, take away what restores it before a start, and start this process with %s",
			options.Dir, restored.Self, restored.Cluster, identity.Member, identity.Cluster, typed.Emptied)
	}
	if err := discardLog(options, restoredBase); err != nil {
		return err
	}
	base := consensus.Founding(first)
	base.Position = restoredBase
	dir := options.storeDir(firstGeneration)
	if _, err := options.FS.Stat(dir); oserror.IsNotExist(err) {
		return fmt.Errorf("datadir: %w: %s is missing: restore once more, into another directory", ErrDamaged, dir)
	}
	store, err := options.OpenEngine(dir)
	if err != nil {
		return err
	}
	if err = apply.Found(store, identity.Cluster, max(restored.Level, level.First), &base); err == nil {
		err = apply.SetOwner(store, identity)
	}
	if err = errors.Join(err, store.Close()); err != nil {
		return fmt.Errorf("datadir: begin with restored contents: %w", err)
	}
	if err := complete(options, identity, &base); err != nil {
		return err
	}
	return options.FS.Remove(options.FS.PathJoin(options.Dir, restoredFile))
}

// discardHalfCreated removes the parts that an interrupted creation left. It removes nothing that holds an entry.
func discardHalfCreated(options Options) error {
	fs := options.FS
	discarded := fs.PathJoin(options.Dir, discardedDir)
	if err := fs.RemoveAll(discarded); err != nil {
		return err
	}
	if err := discardLog(options, consensus.Position{}); err != nil {
		return err
	}
	all, err := snapshot.Generations(fs, options.Dir)
	if err != nil {
		return err
	}
	for _, generation := range all {
		if err := refuseUsedStore(options, options.storeDir(generation)); err != nil {
			return err
		}
	}
	// A store with some of its files removed would look damaged, so the whole folder is renamed before it is removed.
	stores := fs.PathJoin(options.Dir, snapshot.StoresDir)
	if _, err := fs.Stat(stores); oserror.IsNotExist(err) {
		return nil
	}
	if err := fs.Rename(stores, discarded); err != nil {
		return err
	}
	if err := durable.SyncDir(fs, options.Dir); err != nil {
		return err
	}
	return fs.RemoveAll(discarded)
}

// discardLog removes a log that holds nothing after base. If the log holds more, the error is ErrDamaged.
func discardLog(options Options, base consensus.Position) error {
	if _, err := options.FS.Stat(options.walDir()); err != nil {
		return nil // wal.Create reports any other error
	}
	log, recovered, err := wal.Open(options.WAL())
	switch {
	case errors.Is(err, wal.ErrNoLog):
	case err != nil:
		return err
	default:
		if err := log.Close(); err != nil {
			return err
		}
		begun := recovered.Base.Position
		if len(recovered.Entries) > 0 || recovered.Hard.Term > 0 || begun != (consensus.Position{}) && begun != base {
			return fmt.Errorf("datadir: %w: %s has a log but %s is missing: correct --data-dir or --wal-dir if one of "+
				"them is wrong, else replace this member", ErrDamaged, options.walDir(), options.bootsFile())
		}
	}
	return options.FS.RemoveAll(options.walDir())
}

// refuseUsedStore refuses to discard a store that has applied anything or that does not open: in that case log and boots file
// were removed by hand, or --wal-dir names the wrong directory. A creation leaves a store that opens and has applied nothing.
func refuseUsedStore(options Options, dir string) error {
	store, err := options.OpenEngine(dir)
	if err != nil {
		return err
	}
	machine, err := apply.Open(store, options.Apply)
	if errors.Is(err, apply.ErrNotBootstrapped) {
		return store.Close()
	}
	used := err == nil && machine.Applied().Index > 0
	if err := errors.Join(err, store.Close()); err != nil || !used {
		return err
	}
	return fmt.Errorf("datadir: %w: %s holds data but %s and the log in %s are missing: correct --data-dir or --wal-dir if "+
		"one of them is wrong, else replace this member", ErrDamaged, dir, options.bootsFile(), options.walDir())
}
