package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/restore"
)

// finishRestore refuses a directory that was being restored: a start would found an empty cluster there.
func (s *Server) finishRestore(options datadir.Options) error {
	if err := datadir.FinishRestore(options); err != nil {
		return fmt.Errorf("--data-dir %s: %w: run `quorate snapshot restore` again, which begins anew. To start without what "+
			"was to be restored, remove %s.partial", s.cfg.Storage.DataDir, err, options.Dir)
	}
	return nil
}

// etcdSuffix is added to the name of the directory that was etcd's.
const etcdSuffix = ".etcd"

// takeOverEtcd restores from the files of an etcd, if that is what the directory holds: of one that was stopped, or that
// `etcdutl snapshot restore` made. They stay as they are, under another name.
func (s *Server) takeOverEtcd(ctx context.Context, options datadir.Options) error {
	dir := s.cfg.Storage.DataDir
	if _, err := s.disk.fs.Stat(restore.DatabasePath(dir)); err != nil {
		return nil
	}
	aside := options.Dir + etcdSuffix
	if _, err := os.Stat(aside); err == nil {
		return fmt.Errorf("--data-dir %s holds the files of an etcd, and %s, which an earlier start has put aside, is still "+
			"there: move one of them away", dir, aside)
	}
	if s.cfg.Bootstrap.ForceNewCluster {
		return fmt.Errorf("--data-dir %s holds the files of an etcd: to begin with this member alone, use `quorate snapshot "+
			"restore %s --data-dir DIR` and start without --force-new-cluster", dir, typed.Word(dir))
	}
	if logs, _ := filepath.Glob(filepath.Join(s.cfg.Storage.WALDir, "*.wal")); s.cfg.Storage.WALDir != "" && len(logs) > 0 {
		return fmt.Errorf("--data-dir %s and --wal-dir %s hold the files of an etcd: use `quorate snapshot restore %s "+
			"--from-wal-dir %s --data-dir DIR`, and start with other directories", dir, s.cfg.Storage.WALDir,
			typed.Word(dir), typed.Word(s.cfg.Storage.WALDir))
	}
	etcd, err := restore.OpenEtcd(ctx, dir, "")
	if err != nil {
		return fmt.Errorf("--data-dir holds the files of an etcd: %w", err)
	}
	defer etcd.Close()
	result, err := etcd.TakeOver(ctx, options, aside)
	if err != nil {
		return fmt.Errorf("take over the files of the etcd in --data-dir %s, which are unchanged: %w", dir, err)
	}
	s.logger.Warn("took over the contents of an etcd; its files are kept as they were. To go back to it, stop this member, "+
		"and give them their name again", "etcd-files", aside, "name-before", options.Dir, "revision", int64(result.Revision),
		"keys", result.Keys, "leases", result.Leases, "users", result.Users, "members", len(etcd.Members))
	return nil
}
