package member

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/cockroachdb/errors/oserror"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

// DataOptions say where a member's data is and how its store is opened.
type DataOptions struct {
	FS     env.FS
	Dir    string // holds store, snapshots and the boot counter
	WALDir string // empty: Dir/wal
	NoSync bool
	// SegmentBytes is the size of a WAL segment; zero: the WAL's default.
	SegmentBytes int64
	OpenEngine   func(dir string) (engine.Engine, error)
	Apply        apply.Options
	Logger       *slog.Logger
	// Nonce draws the random part of a life, and of an epoch; nil: the system's generator.
	Nonce func() uint64
	// OpenView opens a copy of a store for reading only. What goes wrong there concerns the copy, never the member. Nil:
	// OpenEngine.
	OpenView func(dir string) (engine.Engine, error)
}

func (o *DataOptions) openView(dir string) (engine.Engine, error) {
	if o.OpenView != nil {
		return o.OpenView(dir)
	}
	return o.OpenEngine(dir)
}

func (o *DataOptions) walDir() string {
	if o.WALDir != "" {
		return o.WALDir
	}
	return o.FS.PathJoin(o.Dir, "wal")
}

func (o *DataOptions) storeDir(generation uint64) string {
	return snapshot.StorePath(o.FS, o.Dir, generation)
}

func (o *DataOptions) bootsFile() string { return o.FS.PathJoin(o.Dir, "boots") }

func (o *DataOptions) wal() wal.Options {
	return wal.Options{FS: o.FS, Dir: o.walDir(), NoSync: o.NoSync, SegmentBytes: o.SegmentBytes, Logger: o.Logger}
}

// Data is everything a member has on disk, open.
type Data struct {
	Options  DataOptions
	Identity wal.Identity
	Boots    uint64 // how often this data was opened, from 1; numbers the member's sessions
	Nonce    uint64 // of this life
	WAL      *wal.WAL
	Restored raft.Restored
	// Generation is the store that counts, Engine and Machine are its. It belongs to the goroutine that applies.
	*Generation

	currentMu sync.Mutex // guards current and its file
	current   snapshot.Current
	retired   sync.WaitGroup // generations that do not count any more, until they are closed
}

// Life names this run of the member on its data. It is durable.
func (d *Data) Life() consensus.Life { return consensus.Life{Boots: d.Boots, Nonce: d.Nonce} }

// Exists reports whether there is a member's data. A creation that did not finish does not count: it leaves no boot
// counter, which is written last.
func Exists(options DataOptions) (bool, error) {
	if _, err := options.FS.Stat(options.bootsFile()); err == nil {
		return true, nil
	} else if !oserror.IsNotExist(err) {
		return false, fmt.Errorf("member: look for data in %s: %w", options.Dir, err)
	}
	return false, nil
}

const (
	firstGeneration = 1
	// discardedDir is where the stores of an interrupted creation are while they are removed.
	discardedDir = "stores.discarded"
)

// Create makes the data of a new member. first is the configuration that the cluster begins with, or none for a member
// that will learn it from the log.
func Create(options DataOptions, identity wal.Identity, first consensus.Config) error {
	if err := discardHalfCreated(options); err != nil {
		return err
	}
	if identity.Storage.IsZero() {
		return errors.New("member: a data directory needs a storage id")
	}
	if err := durable.MakeDir(options.FS, options.Dir); err != nil {
		return fmt.Errorf("member: create data directory: %w", err)
	}
	store, err := options.OpenEngine(options.storeDir(firstGeneration))
	if err != nil {
		return err
	}
	if err = apply.Bootstrap(store, identity.Cluster, first); err == nil {
		err = apply.SetOwner(store, identity)
	}
	if err = errors.Join(err, store.Close()); err != nil {
		return fmt.Errorf("member: create store: %w", err)
	}
	log, err := wal.Create(options.wal(), identity)
	if err != nil {
		return err
	}
	base := consensus.Founding(first)
	err = log.Append(wal.Batch{Reset: &base})
	if err = errors.Join(err, log.Close()); err != nil {
		return err
	}
	if err := snapshot.Switch(options.FS, options.Dir, snapshot.Current{Generation: firstGeneration}); err != nil {
		return err
	}
	return writeBoots(&options, &bootsRecord{identity: identity})
}

// discardHalfCreated removes what a creation left that was interrupted. It touches nothing that holds an entry.
func discardHalfCreated(options DataOptions) error {
	fs := options.FS
	discarded := fs.PathJoin(options.Dir, discardedDir)
	if err := fs.RemoveAll(discarded); err != nil {
		return err
	}
	if _, err := fs.Stat(options.walDir()); err == nil {
		log, recovered, err := wal.Open(options.wal())
		switch {
		case errors.Is(err, wal.ErrNoLog):
		case err != nil:
			return err
		default:
			if err := log.Close(); err != nil {
				return err
			}
			if len(recovered.Entries) > 0 || recovered.Hard.Term > 0 || recovered.Base.Mark.Index > 0 {
				return fmt.Errorf("member: %w: %s has a log but %s is missing: correct --data-dir or --wal-dir if one of "+
					"them is wrong, else replace this member", ErrDamaged, options.walDir(), options.bootsFile())
			}
		}
		if err := fs.RemoveAll(options.walDir()); err != nil {
			return err
		}
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
	// A store of which a part was removed would look damaged: it gets out of the way as a whole, and then goes file by file.
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

// refuseUsedStore refuses to discard a store that has applied anything or that does not open: log and boot counter
// were removed by hand, or the log lies where --wal-dir does not say. A creation leaves a store that opens, at zero.
func refuseUsedStore(options DataOptions, dir string) error {
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
	return fmt.Errorf("member: %w: %s holds data but %s and the log in %s are missing: correct --data-dir or --wal-dir if "+
		"one of them is wrong, else replace this member", ErrDamaged, dir, options.bootsFile(), options.walDir())
}

// Open opens a member's data, removes what an interrupted installation of a snapshot left, and checks that log, store and
// boots file belong together.
func Open(options DataOptions) (*Data, error) {
	current, err := snapshot.Recover(options.FS, options.Dir)
	if err != nil {
		return nil, err
	}
	log, recovered, err := wal.Open(options.wal())
	if errors.Is(err, wal.ErrNoLog) {
		err = fmt.Errorf("member: %s is the data of a member whose log is not in %s: correct --wal-dir if it is wrong, else "+
			"replace this member: %w", options.Dir, options.walDir(), err)
	}
	if err != nil {
		return nil, err
	}
	boots, err := readBoots(&options)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	d := &Data{
		Options: options, WAL: log, Identity: recovered.Identity, Boots: boots.boots + 1, Nonce: randomNonce(),
		current: current,
	}
	if options.Nonce != nil {
		d.Nonce = options.Nonce()
	}
	if d.Generation, err = d.openGeneration(current.Generation, options.Apply); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	ofStore := part{"the store in", options.storeDir(current.Generation), d.Machine.Owner()}
	err = checkParts(&options, &boots, &recovered, ofStore)
	if err == nil {
		err = d.restore(recovered)
	}
	if err == nil {
		err = d.begin()
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// begin makes this life and the epoch of the log durable, in the log first: see checkBoots.
func (d *Data) begin() error {
	if d.Machine.Owner() != d.Identity {
		if err := d.Machine.SetOwner(d.Identity); err != nil {
			return err
		}
	}
	if err := d.WAL.Append(wal.Batch{Boots: d.Boots}); err != nil {
		return err
	}
	return writeBoots(&d.Options, &bootsRecord{identity: d.Identity, boots: d.Boots})
}

// openGeneration opens a store that lies in its place.
func (d *Data) openGeneration(number uint64, options apply.Options) (*Generation, error) {
	dir := d.Options.storeDir(number)
	store, err := d.Options.OpenEngine(dir)
	if err != nil {
		return nil, err
	}
	g := newGeneration(number)
	options.Store.Life = g.life
	machine, err := apply.Open(store, options)
	if errors.Is(err, apply.ErrNotBootstrapped) {
		err = fmt.Errorf("member: %w: %s has lost its contents: replace this member: %w", ErrDamaged, dir, err)
	}
	if err != nil {
		g.end()
		return nil, errors.Join(err, store.Close())
	}
	g.Engine, g.Machine = store, machine
	return g, nil
}

// restore checks the log against the store and builds what the core begins with.
func (d *Data) restore(recovered wal.Recovered) error {
	applied := d.Machine.Applied()
	base := recovered.Base
	last := base.Mark.Index + consensus.Index(len(recovered.Entries))
	if applied.Index < base.Mark.Index {
		return fmt.Errorf("member: %w: the store in %s ends at index %d but the log begins after %d: the store was "+
			"replaced by an older one", ErrDamaged, d.Options.Dir, applied.Index, base.Mark.Index)
	}
	if !holds(&recovered, applied) {
		// Only an installation that the log did not hear of explains it. What the log has instead never committed.
		if d.current.Installed != applied {
			return fmt.Errorf("member: %w: the store in %s has applied %v but the log, which ends at index %d, does not hold "+
				"that entry: it lost its end", ErrDamaged, d.Options.Dir, applied, last)
		}
		base = d.Machine.SnapshotMeta()
		answered := raft.AnsweredRecords(&recovered.Base, recovered.Entries, d.Identity.Member)
		batch := wal.Batch{Reset: &base, Witness: wal.WitnessRecords(keepAll(answered))}
		if err := d.WAL.Append(batch); err != nil {
			return err
		}
		recovered.Entries, recovered.Witness = nil, append(recovered.Witness, batch.Witness...)
	}
	if err := d.logTookOver(d.current.Installed); err != nil {
		return err
	}
	records, err := restoredRecords(recovered.Witness)
	if err != nil {
		return fmt.Errorf("member: the log in %s: %w", d.Options.walDir(), err)
	}
	hard := recovered.Hard
	hard.Commit = max(hard.Commit, applied.Index)
	hard.Term = max(hard.Term, base.Mark.Term)
	d.Restored = raft.Restored{
		Hard: hard, Base: base, Entries: recovered.Entries, Applied: applied.Index, Tombstones: d.tombstones(),
		Revision: uint64(d.Machine.Store().Revision()), Records: records,
	}
	return nil
}

// holds reports whether mark is a position of the log. An entry of another term at its index does not count.
func holds(log *wal.Recovered, mark consensus.Mark) bool {
	base := log.Base.Mark
	if mark.Index <= base.Index {
		return mark == base
	}
	at := mark.Index - base.Index - 1
	return at < consensus.Index(len(log.Entries)) && log.Entries[at].Term == mark.Term
}

func (d *Data) tombstones() []consensus.MemberID {
	var ids []consensus.MemberID
	for _, t := range d.Machine.Tombstones() {
		ids = append(ids, t.Member)
	}
	return ids
}

// Close closes log and store. It does not flush: the log has what the store lacks. It waits for those who read the store,
// and ends their long work.
func (d *Data) Close() error {
	err := d.WAL.Close()
	d.letGo(nil)
	<-d.closed
	d.retired.Wait()
	return errors.Join(err, d.err)
}
