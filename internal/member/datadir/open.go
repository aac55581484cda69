package datadir

import (
	"errors"
	"fmt"
	"sync"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Data is everything that a member has on disk, opened.
type Data struct {
	Options  Options
	Identity wal.Identity
	Boots    uint64 // how often this data was opened, from 1; used in the numbers of the member's sessions
	Nonce    uint64 // random part of this life
	WAL      *wal.WAL
	Restored raft.Restored
	// Generation is the current store, with its Engine and its Machine. It belongs to the goroutine that applies.
	*Generation

	currentMu sync.Mutex // guards current and its file
	current   snapshot.Current
	retired   sync.WaitGroup // replaced generations that are not closed yet
}

// Life names this run of the member on its data. It is durable.
func (d *Data) Life() consensus.Life { return consensus.Life{Boots: d.Boots, Nonce: d.Nonce} }

// Open opens a member's data, removes the remains of an interrupted snapshot installation, and checks that log, store and boots
// file belong together. Errors include ErrDamaged, ErrMixed, ErrRolledBack, ErrNewerBuild and ErrLogElsewhere.
func Open(options Options) (*Data, error) {
	if err := CheckFormat(options); err != nil {
		return nil, err
	}
	if err := CheckStore(options); err != nil {
		return nil, err
	}
	if _, err := snapshot.Find(options.FS, options.Dir); err != nil {
		return nil, newerBuild(err)
	}
	var current snapshot.Current
	ofLog := options.WAL()
	ofLog.Check = func(log *wal.Recovered) (err error) {
		if err = checkLog(&options, log); err == nil {
			// Only now, since nothing is changed for a build that may not start; and before the log is written, since the room
			// of the remains may be all that a full disk has.
			current, err = snapshot.Recover(options.FS, options.Dir)
		}
		return err
	}
	log, recovered, err := wal.Open(ofLog)
	if err != nil {
		return nil, options.noLog(newerBuild(err))
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

// begin makes this start and the epoch of the log durable, first in the log and then in the boots file: see checkBoots.
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

// openGeneration opens a store at its final place.
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
		err = fmt.Errorf("datadir: %w: %s has lost its contents: replace this member: %w", ErrDamaged, dir, err)
	}
	if err != nil {
		g.end()
		return nil, errors.Join(err, store.Close())
	}
	g.Engine, g.Machine = store, machine
	return g, nil
}

// restore checks the log against the store and builds the state with which the core begins.
func (d *Data) restore(recovered wal.Recovered) error {
	applied := d.Machine.Applied()
	base := recovered.Base
	last := base.Position.Index + consensus.Index(len(recovered.Entries))
	if applied.Index < base.Position.Index {
		return fmt.Errorf("datadir: %w: the store in %s ends at index %d but the log begins after %d: the store was "+
			"replaced by an older one", ErrDamaged, d.Options.Dir, applied.Index, base.Position.Index)
	}
	if !recovered.Holds(applied) {
		// This is right only after the installation of a snapshot that the log does not know of yet. The log's other entries up
		// to there never committed.
		if d.current.Installed != applied {
			return fmt.Errorf("datadir: %w: the store in %s has applied %v but the log, which ends at index %d, does not hold "+
				"that entry: it lost its end", ErrDamaged, d.Options.Dir, applied, last)
		}
		base = d.Machine.SnapshotMeta()
		answered := fast.AnsweredRecords(&recovered.Base, recovered.Entries, d.Identity.Member)
		batch := wal.Batch{Reset: &base, Witness: additions(answered)}
		if err := d.WAL.Append(batch); err != nil {
			return err
		}
		recovered.Entries, recovered.Witness = nil, append(recovered.Witness, batch.Witness...)
	}
	if err := d.logTookOver(d.current.Installed); err != nil {
		return err
	}
	records, err := records(&d.Options, &recovered)
	if err != nil {
		return err
	}
	hard := recovered.Hard
	hard.Commit = max(hard.Commit, applied.Index)
	if hard.Term < base.Position.Term { // the vote was given in an earlier term
		hard.Term, hard.Vote = base.Position.Term, consensus.NoMember
	}
	d.Restored = raft.Restored{
		Hard: hard, Base: base, Entries: recovered.Entries, Applied: applied.Index, Tombstones: d.Tombstones(),
		Revision: uint64(d.Machine.Store().Revision()), Records: records,
	}
	return nil
}

// additions returns what the log must write to keep records.
func additions(records []consensus.Record) []consensus.WitnessRecord {
	changes := make([]consensus.RecordChange, len(records))
	for i := range records {
		changes[i].Record = records[i]
	}
	return consensus.WitnessRecords(changes)
}

// checkLog returns an error if the log holds what this build cannot follow: it is called before anything of it is changed.
func checkLog(options *Options, log *wal.Recovered) error {
	for i := range log.Entries {
		e := &log.Entries[i]
		err := consensus.CheckEntry(e)
		switch {
		case errors.Is(err, level.ErrLater):
			return newerBuild(fmt.Errorf("the log in %s: entry %v: %w", options.walDir(), e.Position(), err))
		case err != nil:
			return fmt.Errorf("datadir: the log in %s: %w: entry %v: %w", options.walDir(), ErrDamaged, e.Position(), err)
		}
	}
	_, err := records(options, log)
	return err
}

// records decodes the log's records of proposals.
func records(options *Options, log *wal.Recovered) ([]consensus.Record, error) {
	records, err := consensus.DecodeRecords(log.Witness)
	if errors.Is(err, level.ErrLater) {
		return nil, newerBuild(fmt.Errorf("the log in %s: %w", options.walDir(), err))
	}
	if err != nil {
		return nil, fmt.Errorf("datadir: the log in %s: %w: %w", options.walDir(), ErrDamaged, err)
	}
	return records, nil
}

// Tombstones returns the ids of the members that the cluster has removed, as the store knows them.
func (d *Data) Tombstones() []consensus.MemberID {
	var ids []consensus.MemberID
	for _, t := range d.Machine.Tombstones() {
		ids = append(ids, t.Member)
	}
	return ids
}

// Close closes log and store, ends long work on the store and waits for its readers, streams of watchers that nobody waits for
// any more among them. It does not flush the store: the log has the entries that the store lacks.
func (d *Data) Close() error {
	err := d.WAL.Close()
	d.Machine.Detach()
	d.giveUp(nil)
	<-d.closed
	d.retired.Wait()
	return errors.Join(err, d.err)
}
