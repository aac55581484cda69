package member

import (
	"context"
	"io"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/snapshots"
)

func newReceiver(o *Options, stores *datadir.Stores) *snapshots.Receiver {
	return snapshots.NewReceiver(snapshots.ReceiverOptions{
		Stores: stores, Data: &o.Data.Options, Check: o.Data.Check, DiskLow: o.diskLow,
		Reserve: o.DiskReserve, Logger: o.Logger,
	})
}

func newSender(o *Options, stores *datadir.Stores, peers *peers) *snapshots.Sender {
	return snapshots.NewSender(snapshots.SenderOptions{
		Stores: stores, Data: &o.Data.Options, Clock: o.Clock, Logger: o.Logger,
		Stream: func(
			ctx context.Context, to consensus.MemberID, meta consensus.SnapshotMeta, write func(io.Writer) error,
		) error {
			return peers.transport.SendSnapshot(ctx, to, meta, write)
		},
	})
}
