package member

import (
	"context"
	"io"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/snapshots"
)

func newReceiver(m *Member) *snapshots.Receiver {
	return snapshots.NewReceiver(snapshots.ReceiverOptions{
		Stores: &m.stores, Data: &m.data.Options, Check: m.data.Check, DiskLow: m.options.DiskLow, Logger: m.logger,
	})
}

func newSender(m *Member) *snapshots.Sender {
	return snapshots.NewSender(snapshots.SenderOptions{
		Stores: &m.stores, Data: &m.data.Options, Clock: m.options.Clock, Logger: m.logger,
		Stream: func(
			ctx context.Context, to consensus.MemberID, meta consensus.SnapshotMeta, write func(io.Writer) error,
		) error {
			return m.peers.transport.SendSnapshot(ctx, to, meta, write)
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

// Backup calls f with the opened state machine of a consistent checkpoint. Writes go on meanwhile. The context that f
// gets ends when the member stops, too.
func (m *Member) Backup(ctx context.Context, f func(ctx context.Context, machine *apply.Machine) error) error {
	return m.sender.Backup(ctx, f)
}

// ReceiveSnapshot verifies and keeps a snapshot that the leader streams. It is the transport's handler.
func (m *Member) ReceiveSnapshot(from consensus.MemberID, meta consensus.SnapshotMeta, r io.Reader) error {
	return m.received.Receive(from, meta, r)
}
