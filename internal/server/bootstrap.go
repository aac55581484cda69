package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/server/discovery/srv"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/transport"
)

// bootstrap makes the data of a member at its first start: it founds a cluster with others (founding.go), or learns from the
// members of a running one who it is (join.go, join_url.go). It runs before there is a member.
type bootstrap struct {
	cfg     *config.Config
	data    datadir.Options
	logger  *slog.Logger
	asking  transport.Options // of a call to the process that listens at a peer URL
	delay   func(to consensus.Member) time.Duration
	listen  func() ([]net.Listener, error) // at the peer URLs
	startup func() *startupServer          // answers clients meanwhile
	memory  int64                          // that this process may have

	resolver srv.Resolver // nil: that of the system
}

// makeData makes the data of a member, after which the record of how it came to be is of no use.
func makeData(options datadir.Options, identity wal.Identity, first consensus.Config) error {
	if err := datadir.Create(options, identity, first); err != nil {
		return err
	}
	return datadir.RemoveFounding(options)
}

// refuseAlone refuses to found a cluster of one that no operator asked for, where it is likely that the member has lost its
// disk: the cluster that counts it would go on without it, and clients of this one would write into another. etcd founds one.
func (b *bootstrap) refuseAlone() error {
	if !b.cfg.AloneByDefault() {
		return nil
	}
	own := fmt.Sprintf("%s=%s", b.cfg.Name, advertised(b.cfg))
	return fmt.Errorf("--data-dir %s is empty, and no flag says of which cluster this member is. If it had data, do not found "+
		"a cluster here: correct --data-dir, or mount its disk. If its disk is lost for ever, start it with --join and the "+
		"peer URL of a member that serves: it says what to do there. For a new cluster name all its members, each at its peer "+
		"URL: --initial-cluster %s alone makes a cluster of one", b.cfg.Storage.DataDir, own)
}

// ownStorage returns the storage id of this member's directory, which is on disk before another process hears of it: a process
// that asks twice asks as the same one.
func (b *bootstrap) ownStorage() (consensus.StorageID, error) {
	record, err := datadir.ReadFounding(b.data)
	if err == nil && record.Storage.IsZero() {
		record.Storage = datadir.NewStorageID()
		err = datadir.WriteFounding(b.data, record)
	}
	return record.Storage, err
}

// waitAsLost keeps a process whose data directory is of no use where people can see it, until it is stopped.
func (b *bootstrap) waitAsLost(ctx context.Context, lost *datadir.LostError) error {
	startup := b.startup()
	defer startup.close()
	for {
		startup.sayLost(lost.Text)
		b.logger.Error("this data directory can not be used by its member any more", "data-dir", b.cfg.Storage.DataDir,
			"why", lost.Text)
		select {
		case <-ctx.Done():
			return lost
		case <-time.After(waitingLog):
		}
	}
}

// advertised is the address that others are told.
func advertised(cfg *config.Config) string {
	if len(cfg.Advertise.PeerURLs) == 0 {
		return ""
	}
	return cfg.Advertise.PeerURLs[0].String()
}

// address is what a founder tells others of itself. The flags of a restored member need not name it.
func (b *bootstrap) address(first *founding) string {
	if m, known := first.config.Member(first.self); first.restored && known && len(m.PeerURLs) > 0 &&
		!b.cfg.Explicit("initial-advertise-peer-urls") {
		return m.PeerURLs[0]
	}
	return advertised(b.cfg)
}
