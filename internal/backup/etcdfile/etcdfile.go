package etcdfile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/etcdbackup"
)

// revisionSpan is the number of revisions that are read at once while a file is written: the more, the fewer blocks of the
// store are read twice.
const revisionSpan = 10_000

// The parts of a file's memory: changes that are read, and the rows of a transaction, which exist twice while they are written.
const (
	readPart = 4
	txPart   = 8
)

// Plan is a file, and its bounds.
type Plan struct {
	Name     string
	Memory   int64                   // bytes, for what is read and written at once
	Expected int64                   // the expected length of the file
	Written  func(bytes int64) error // see etcdbackup.Options; nil: there is no bound
	// Storage and Cluster are the versions of etcd that the file names, as "3.7.0".
	Storage, Cluster string
}

// ErrWrite means that a file could not be written: the disk, or the store, has a fault.
var ErrWrite = errors.New("cannot write backup")

// Write writes the state of a machine, which must not change meanwhile, to a database file.
func (p *Plan) Write(ctx context.Context, machine *apply.Machine) (err error) {
	w, err := etcdbackup.Create(ctx, p.Name, etcdbackup.Options{
		TxBytes: int(p.Memory / txPart), ExpectBytes: p.Expected, Written: p.Written,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	defer func() {
		if closed := w.Close(); err == nil && closed != nil {
			err = fmt.Errorf("%w: %w", ErrWrite, closed)
		}
	}()
	b := copying{w, machine, p}
	for _, step := range []func() error{
		b.oldVersions, b.history, b.meta, b.leases, b.alarms, b.users, b.members, w.Finish,
	} {
		if err := step(); err != nil {
			return fmt.Errorf("%w: %w", ErrWrite, err)
		}
	}
	return nil
}

// copying copies a machine into a file.
type copying struct {
	file    *etcdbackup.Writer
	machine *apply.Machine
	plan    *Plan
}

// oldVersions writes the versions that a read at the compact revision shows and that later history does not contain: those from
// before it. Their sub-revisions are no longer known.
func (b *copying) oldVersions() error {
	store := b.machine.Store()
	compact := store.CompactRevision()
	if compact <= 1 {
		return nil
	}
	op := kv.RangeOp{Key: []byte{0}, End: []byte{0}, Revision: compact, MaxMod: compact - 1}
	_, err := store.RangeInto(&op, false, nil, mvcc.RowsFunc(b.file.Version)) // one by one: all of them may not fit in memory
	return err
}

// history writes every change from the compact revision on.
func (b *copying) history() error {
	store := b.machine.Store()
	next, last := max(store.CompactRevision(), 1), store.Revision()
	for next <= last {
		changes, after, err := store.EventsSince(mvcc.EventQuery{
			From: next, To: last, MaxRevisions: revisionSpan, MaxBytes: int(b.plan.Memory / readPart),
		})
		if err != nil {
			return err
		}
		for i := range changes {
			if err := b.file.Change(changes[i].Revision, changes[i].Events); err != nil {
				return err
			}
		}
		next = after
	}
	return nil
}

func (b *copying) meta() error {
	applied := b.machine.Applied()
	config, _ := b.machine.Config()
	return b.file.Meta(&etcdbackup.Meta{
		Index: applied.Index, Term: applied.Term, Voters: config.Voters, Learners: config.Learners,
		Compacted: b.machine.Store().CompactRevision(),
		Storage:   b.plan.Storage, Cluster: b.plan.Cluster,
	})
}

func (b *copying) leases() error {
	// The time does not matter: only the granted TTL is written, not the remaining time.
	for _, info := range b.machine.Leases().Leases(time.Time{}) {
		if err := b.file.Lease(info.ID, info.TTLSeconds); err != nil {
			return err
		}
	}
	return nil
}

func (b *copying) alarms() error {
	for _, alarm := range b.machine.Alarms() {
		if err := b.file.Alarm(alarm); err != nil {
			return err
		}
	}
	return nil
}

func (b *copying) users() error { return b.file.Users(b.machine.Users()) }

func (b *copying) members() error {
	config, _ := b.machine.Config()
	for i := range config.Members {
		m := &config.Members[i]
		published, _ := b.machine.Published(m.ID)
		err := b.file.Member(&etcdbackup.Member{
			ID: uint64(m.ID), PeerURLs: m.PeerURLs, IsLearner: config.IsLearner(m.ID),
			Name: published.Name, ClientURLs: published.ClientURLs,
		})
		if err != nil {
			return err
		}
	}
	for _, tomb := range b.machine.Tombstones() {
		if err := b.file.Removed(uint64(tomb.Member)); err != nil {
			return err
		}
	}
	return nil
}
