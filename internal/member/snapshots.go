package member

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/snapshots"
)

func (m *Member) newReceiver() *snapshots.Receiver {
	return snapshots.NewReceiver(snapshots.ReceiverOptions{
		Stores: &m.stores, Data: &m.data.Options, Check: m.data.Check, DiskLow: m.options.DiskLow, Logger: m.logger,
	})
}

func (m *Member) newSender() *snapshots.Sender {
	return snapshots.NewSender(snapshots.SenderOptions{
		Stores: &m.stores, Data: &m.data.Options, Clock: m.options.Clock, Logger: m.logger,
		Stream: func(
			ctx context.Context, to consensus.MemberID, meta consensus.SnapshotMeta, write func(io.Writer) error,
		) error {
			return m.transport.SendSnapshot(ctx, to, meta, write)
		},
	})
}

// sendSnapshot streams a checkpoint of the store to a follower.
func (m *Member) sendSnapshot(to consensus.MemberID) {
	send := m.sender.Begin(m.stopping, to)
	m.background(func() {
		mark, err := send()
		m.inbox.put(raft.SnapshotSent{To: to, Mark: mark, OK: err == nil})
	})
}

// Backup calls f with the opened state machine of a consistent checkpoint. Writes go on meanwhile. The context that f gets
// ends when the member stops, too.
func (m *Member) Backup(ctx context.Context, f func(ctx context.Context, machine *apply.Machine) error) error {
	return m.sender.Backup(ctx, f)
}

// ReceiveSnapshot verifies and keeps a snapshot that the leader streams. It is the transport's handler.
func (m *Member) ReceiveSnapshot(from consensus.MemberID, meta consensus.SnapshotMeta, r io.Reader) error {
	return m.received.Receive(from, meta, r)
}

// install puts a received snapshot in place of the store. It runs in the goroutine that applies.
func (m *Member) install(meta consensus.SnapshotMeta) error {
	dir, ok := m.received.Take(meta.Mark)
	if !ok {
		m.inbox.put(raft.SnapshotInstalled{Meta: meta, Failed: true})
		return nil
	}
	old, err := m.data.Install(meta, dir)
	if errors.Is(err, datadir.ErrSwitch) {
		return fmt.Errorf("install snapshot %v: %w", meta.Mark, err)
	}
	if err != nil {
		m.logger.Error("could not install a snapshot: the present store serves on", "index",
			uint64(meta.Mark.Index), "err", err)
		m.inbox.put(raft.SnapshotInstalled{Meta: meta, Failed: true})
		return nil
	}
	m.serve(m.data.Generation)
	m.background(func() { m.data.Retire(old) })
	m.retainer.sizes, m.retainer.bytes = nil, 0
	m.scrub.wake() // the new store may be less scrubbed than the old one was
	if err := m.node.Restored(meta, m.data.Machine); err != nil {
		return err
	}
	m.noteRemoval()
	m.integrity.Note()
	m.configNews.tell()
	m.jobs.changed.tell()
	m.inbox.put(raft.SnapshotInstalled{
		Meta: meta, Tombstones: m.data.Tombstones(), Revision: uint64(m.data.Machine.Store().Revision()),
	})
	m.logger.Info("installed a snapshot", "index", uint64(meta.Mark.Index), "term", uint64(meta.Mark.Term))
	return nil
}

// serve makes a generation that the data has switched to the one that everybody reads.
func (m *Member) serve(next *datadir.Generation) {
	if m.Leader() == m.ID() {
		next.Machine.Leases().Promote(m.options.Clock.Now(), m.extendLeases())
	}
	m.fates.Store(next.Machine)
	m.stores.Set(next)
}
