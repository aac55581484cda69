package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/etcdbackup"
	"github.com/quorate/quorate/internal/storage/reserve"
)

// backupRevisionSpan is the number of revisions that are read at once while a backup is written: the more, the fewer blocks of
// the store are read twice.
const backupRevisionSpan = 10_000

// The parts of a backup's memory: changes that are read, the rows of a transaction, which exist twice while they are written,
// and the cache of its view of the store, which package server gives it: see BackupCacheBytes.
const (
	backupReadPart  = 4
	backupTxPart    = 8
	backupCachePart = 4
)

// BackupCacheBytes is the size of the block cache of a view of the store, if all backups together may use all bytes.
func BackupCacheBytes(all int64) int64 { return min(all, mostBackupBytes) / backupCachePart }

// backupPlan is the file and the bounds of a backup.
type backupPlan struct {
	name     string
	memory   int64
	expected int64 // the expected length of the file
	claim    *reserve.Claim
	version  Version
}

var errBackup = errors.New("rpc: cannot write backup")

// write writes the state of a machine, which must not change meanwhile, to a database file.
func (p *backupPlan) write(ctx context.Context, machine *apply.Machine) (err error) {
	w, err := etcdbackup.Create(ctx, p.name, etcdbackup.Options{
		TxBytes: int(p.memory / backupTxPart), ExpectBytes: p.expected, Written: p.claim.Written,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errBackup, err)
	}
	defer func() {
		if closed := w.Close(); err == nil && closed != nil {
			err = fmt.Errorf("%w: %w", errBackup, closed)
		}
	}()
	b := backup{w, machine, p}
	for _, step := range []func() error{
		b.oldVersions, b.history, b.meta, b.leases, b.alarms, b.users, b.members, w.Finish,
	} {
		if err := step(); err != nil {
			return fmt.Errorf("%w: %w", errBackup, err)
		}
	}
	return nil
}

// backup copies a machine into a file.
type backup struct {
	file    *etcdbackup.Writer
	machine *apply.Machine
	plan    *backupPlan
}

// oldVersions writes the versions that a read at the compact revision shows and that later history does not contain: those from
// before it. Their sub-revisions are no longer known.
func (b *backup) oldVersions() error {
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
func (b *backup) history() error {
	store := b.machine.Store()
	next, last := max(store.CompactRevision(), 1), store.Revision()
	for next <= last {
		changes, after, err := store.EventsSince(mvcc.EventQuery{
			From: next, To: last, MaxRevisions: backupRevisionSpan, MaxBytes: int(b.plan.memory / backupReadPart),
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

func (b *backup) meta() error {
	applied := b.machine.Applied()
	config, _ := b.machine.Config()
	return b.file.Meta(&etcdbackup.Meta{
		Index: applied.Index, Term: applied.Term, Voters: config.Voters, Learners: config.Learners,
		Compacted: b.machine.Store().CompactRevision(),
		Storage:   b.plan.version.Storage, Cluster: b.plan.version.Cluster,
	})
}

func (b *backup) leases() error {
	// The time does not matter: only the granted TTL is written, not the remaining time.
	for _, info := range b.machine.Leases().Leases(time.Time{}) {
		if err := b.file.Lease(info.ID, info.TTLSeconds); err != nil {
			return err
		}
	}
	return nil
}

func (b *backup) alarms() error {
	for _, alarm := range b.machine.Alarms() {
		if err := b.file.Alarm(alarm); err != nil {
			return err
		}
	}
	return nil
}

func (b *backup) users() error { return b.file.Users(b.machine.Users()) }

func (b *backup) members() error {
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
