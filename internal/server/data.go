package server

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/rpc"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/wal"
)

// dataOptions say where this member's data lies: DIR/member, or for the log --wal-dir.
func (s *Server) dataOptions() datadir.Options {
	machine := s.budgets.machineOptions()
	machine.Counts = s.timings.counts
	options := datadir.Options{
		Dir:     filepath.Join(s.cfg.Storage.DataDir, memberDir),
		WALDir:  s.cfg.Storage.WALDir,
		NoSync:  s.cfg.Storage.UnsafeNoFsync,
		Logger:  s.logger,
		Apply:   machine,
		Written: s.timings.written,
		OpenEngine: func(dir string) (engine.Engine, error) {
			return engine.Open(engine.Options{FS: s.disk.fs, Dir: dir, Logger: s.logger, OnFatal: s.fatal,
				MemTableBytes: s.budgets.MemTable, CacheBytes: s.budgets.Blocks, Paced: true,
				Flushed: func(took time.Duration) { s.timings.flush.Observe(took.Seconds()) }})
		},
		OpenView: func(dir string) (engine.Engine, error) {
			return engine.OpenView(s.disk.fs, dir, rpc.BackupCacheBytes(s.budgets.Backups), s.logger)
		},
	}
	s.disk.lay(&options)
	return options
}

// checkData refuses the directory of a later build before it is locked: it stays as it is, without a lock file if it has none.
// The store is opened for that only if there is none, and so no process can have the store open.
func (s *Server) checkData(context.Context, Options) error {
	options := s.dataOptions()
	if err := datadir.CheckFormat(options); err != nil {
		return err
	}
	if _, err := s.disk.below.Stat(filepath.Join(s.cfg.Storage.DataDir, lockName)); errors.Is(err, os.ErrNotExist) {
		return datadir.CheckStore(options)
	}
	return nil
}

// openData opens this member's data, or, at its first start, makes it: for a new cluster from --initial-cluster, for
// a running one from what its members say.
func (s *Server) openData(ctx context.Context, o Options) error {
	options := s.dataOptions()
	first := s.firstStart(options)
	first.resolver = o.Resolver
	var lost *datadir.LostError
	if err := datadir.CheckLost(options); errors.As(err, &lost) {
		return first.waitAsLost(ctx, lost)
	} else if err != nil {
		return err
	}
	exists, err := datadir.Exists(options)
	if err != nil {
		return err
	}
	if !exists {
		if err := s.finishRestore(options); err != nil {
			return err
		}
		if err := s.takeOverEtcd(ctx, options); err != nil {
			return err
		}
		if s.cfg.Bootstrap.ForceNewCluster {
			return s.refuseForce()
		}
		if err := first.createData(ctx); err != nil {
			return err
		}
	}
	if exists && s.cfg.Bootstrap.ForceNewCluster {
		if err := s.forceNewCluster(ctx, options); err != nil {
			return err
		}
	}
	if s.data, err = datadir.Open(options); err != nil {
		return err
	}
	if exists && len(s.cfg.Bootstrap.Join) > 0 {
		if err := first.refuseOtherCluster(ctx, s.data.Identity.Cluster); err != nil {
			return err
		}
	}
	s.nameBefore = s.nameOnDisk()
	return s.checkIdentity(exists)
}

// firstStart is what makes the data where there is none.
func (s *Server) firstStart(options datadir.Options) *bootstrap {
	return &bootstrap{
		cfg: &s.cfg, data: options, logger: s.logger, asking: s.asking(), delay: s.peerDelay(),
		listen: s.listenPeers, startup: s.serveStartup, memory: s.budgets.Limit,
	}
}

// createData makes the data of a directory that was restored, or else as the flags say.
func (b *bootstrap) createData(ctx context.Context) error {
	restored, err := datadir.ReadRestored(b.data)
	if err != nil {
		return err
	}
	if restored != nil {
		return b.foundRestored(ctx, restored)
	}
	if err := b.cfg.ValidateBootstrap(); err != nil {
		return err
	}
	if err := b.refuseAlone(); err != nil {
		return err
	}
	if b.cfg.Bootstrap.DNS.Domain != "" {
		if err := b.findInDNS(ctx); err != nil {
			return err
		}
	}
	if !b.cfg.NewCluster() {
		if len(b.cfg.Bootstrap.Join) > 0 {
			return b.makeJoined(b.joinByURL(ctx))
		}
		return b.makeJoined(b.join(ctx))
	}
	if b.cfg.Discovers() {
		if err := b.discover(ctx); err != nil {
			return err
		}
	}
	f, err := b.found()
	if err != nil {
		return err
	}
	if err := b.foundCluster(ctx, f); !errors.Is(err, errRetired) {
		return err
	}
	return b.makeJoined(b.joinByURL(ctx))
}

// makeJoined makes the data of a member that joins, unless it could not.
func (b *bootstrap) makeJoined(identity wal.Identity, err error) error {
	if err != nil {
		return err
	}
	return makeData(b.data, identity, consensus.Config{})
}

// checkIdentity refuses the data of another member or cluster. Flags are compared only where they must agree for
// ever: URLs may have changed since the founding.
func (s *Server) checkIdentity(existed bool) error {
	identity := s.data.Identity
	if !existed {
		return nil
	}
	s.logger.Info("restarting", "cluster", identity.Cluster.String(), "member", identity.Member.String(),
		"applied", uint64(s.data.Machine.Applied().Index), "entries", len(s.data.Restored.Entries))
	if name := s.nameOnDisk(); name != "" && name != s.cfg.Name && s.cfg.Explicit("name") {
		return fmt.Errorf("--data-dir %s belongs to member %q, not to %q: give this member its own directory, or the "+
			"directory its own name", s.cfg.Storage.DataDir, name, s.cfg.Name)
	}
	if !s.cfg.NewCluster() || !s.cfg.Explicit("initial-cluster") {
		return nil
	}
	f, err := found(&s.cfg)
	if err != nil {
		return nil // flags that name a cluster of today, not of the founding: they are not used any more
	}
	if f.cluster != identity.Cluster && f.self != identity.Member {
		return fmt.Errorf("--data-dir %s belongs to cluster %v, but --initial-cluster and --initial-cluster-token "+
			"describe cluster %v: set both flags back to what they were, or remove them, for they count at a first start "+
			"only; or correct --data-dir, if this is a member of another cluster. Nothing was changed", s.cfg.Storage.DataDir,
			identity.Cluster, f.cluster)
	}
	return nil
}

// nameOnDisk tells by which name this member was last known: what it published, or, while that is only in the log,
// what the configuration says. Empty: not known.
func (s *Server) nameOnDisk() string {
	self := s.data.Identity.Member
	if published, known := s.data.Machine.Published(self); known {
		return published.Name
	}
	inForce, _ := s.data.Machine.Config()
	for _, m := range inForce.Members {
		if m.ID == self {
			return m.Name
		}
	}
	return ""
}

func randomID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
