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
)

// How much of the history is read at once while a backup is written: the more, the fewer blocks of the store are read twice.
const (
	backupRevisionSpan = 10_000
	backupReadBytes    = 16 << 20
)

var errBackup = errors.New("rpc: cannot write backup")

// writeBackup writes the state of a machine, which nobody changes, to a database file.
func writeBackup(ctx context.Context, name string, machine *apply.Machine, version Version) (err error) {
	w, err := etcdbackup.Create(ctx, name)
	if err != nil {
		return fmt.Errorf("%w: %w", errBackup, err)
	}
	defer func() {
		if closed := w.Close(); err == nil && closed != nil {
			err = fmt.Errorf("%w: %w", errBackup, closed)
		}
	}()
	b := backup{w, machine, version}
	for _, step := range []func() error{
		b.oldVersions, b.history, b.meta, b.leases, b.alarms, b.users, b.members, w.Finish,
	} {
		if err := step(); err != nil {
			return fmt.Errorf("%w: %w", errBackup, err)
		}
	}
	return nil
}

// backup reads a machine into a file.
type backup struct {
	file    *etcdbackup.Writer
	machine *apply.Machine
	version Version
}

// oldVersions writes what a read at the compact revision shows and later history does not tell: the versions from
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
			From: next, To: last, MaxRevisions: backupRevisionSpan, MaxBytes: backupReadBytes,
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
		Storage:   b.version.Storage, Cluster: b.version.Cluster,
	})
}

func (b *backup) leases() error {
	// The time does not matter: only what was granted is written, not what is left of it.
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
