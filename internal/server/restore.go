package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/restore"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
)

// RestoreRequest is what to restore, and for which member.
type RestoreRequest struct {
	From            string // a snapshot, a database of etcd, or a data directory of etcd
	FromWALDir      string // of the etcd whose data directory From is
	DataDir, WALDir string // empty: the server's default
	SkipHashCheck   bool
	BumpRevision    uint64
	Member          []string // flags of the server: name, initial-cluster and what belongs to it
	Backup          *Backup  // instead of From
	Progress        func(done, total int64)
}

// Restored is what was restored, and where.
type Restored struct {
	restore.Result
	Proved        *Proved // of a Backup
	DataDir, Name string
	Self          consensus.MemberID
	Members       int
}

// Restore makes the data directory of a member that does not run, as a first start with these flags would, but with contents.
// If it fails, no member starts on the directory until a restore succeeds: a start would found an empty cluster there.
func Restore(ctx context.Context, r *RestoreRequest) (*Restored, error) {
	cfg, err := config.Load(r.flags(), nil)
	if err != nil {
		return nil, err
	}
	dir := cfg.Storage.DataDir
	if err := refuseUsed("--data-dir", dir); err != nil {
		return nil, err
	}
	if err := refuseUsed("--wal-dir", cfg.Storage.WALDir); err != nil {
		return nil, err
	}
	if err := files.Disk.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("--data-dir %s: cannot be created: %w", dir, bare(err))
	}
	lock, err := takeLock(files.Disk, dir)
	if err != nil {
		return nil, err
	}
	restored, err := r.into(ctx, &cfg)
	if err != nil {
		restored, err = nil, errors.Join(err, datadir.MarkPartial(restoreOptions(dir, plainDisk(files.Disk))))
	}
	return restored, errors.Join(err, lock.release())
}

// into restores into the directory of cfg, which is locked and holds nothing.
func (r *RestoreRequest) into(ctx context.Context, cfg *config.Config) (*Restored, error) {
	if err := cfg.ValidateBootstrap(); err != nil {
		return nil, err
	}
	first, err := found(cfg)
	if err != nil {
		return nil, err
	}
	limit, err := memory.Limit(cfg.Limits.Memory.Bytes, cfg.Limits.Memory.Percent, memory.Host{Files: os.DirFS("/")}.Available)
	if err != nil {
		return nil, fmt.Errorf("--memory %v: %w", cfg.Limits.Memory, err)
	}
	dir := cfg.Storage.DataDir
	d, err := restoreDisk(ctx, cfg)
	if err != nil {
		return nil, err
	}
	options := restoreOptions(dir, d)
	options.Apply.MostLeases = memory.Divide(limit).Starts()
	request := &restore.Request{
		File: r.From, LogDir: r.FromWALDir, SkipHashCheck: r.SkipHashCheck, BumpRevision: r.BumpRevision,
		Name: cfg.Name, Self: first.self, Members: first.config.Members, Progress: r.Progress,
	}
	restored := &Restored{DataDir: dir, Name: cfg.Name, Self: first.self, Members: len(first.config.Members)}
	if r.Backup != nil {
		request.From = r.Backup.Place
		return restored, r.Backup.into(ctx, options, request, restored)
	}
	result, err := restore.Run(ctx, options, request)
	if err != nil {
		return nil, err
	}
	restored.Result = *result
	return restored, nil
}

// flags are those of a server with the same member.
func (r *RestoreRequest) flags() []string {
	flags := slices.Clone(r.Member)
	if r.DataDir != "" {
		flags = append(flags, "--data-dir="+r.DataDir)
	}
	if r.WALDir != "" {
		flags = append(flags, "--wal-dir="+r.WALDir)
	}
	return flags
}

func restoreOptions(dir string, d disk) datadir.Options {
	logger := slog.New(slog.DiscardHandler)
	options := datadir.Options{
		Dir: filepath.Join(dir, memberDir), Logger: logger,
		OpenEngine: func(dir string) (engine.Engine, error) {
			return engine.Open(engine.Options{FS: d.fs, Dir: dir, Logger: logger})
		},
	}
	d.lay(&options)
	return options
}

// restoreDisk is the disk of a directory that is restored into: it is encrypted if the flags say so, with the ring of an
// attempt before, if there was one.
func restoreDisk(ctx context.Context, cfg *config.Config) (disk, error) {
	d, err := openDisk(ctx, files.Disk, cfg.Storage.DataDir, sourceOf(&cfg.Encryption))
	if err != nil || d.keys != nil || !cfg.Encryption.On() {
		return d, err
	}
	return createRing(ctx, files.Disk, cfg.Storage.DataDir, &cfg.Encryption)
}

// memberDir is the directory of the member's data, in --data-dir, as in etcd.
const memberDir = "member"

// refuseUsed refuses a directory that holds anything but the lock and the rest of an interrupted restore.
func refuseUsed(flag, dir string) error {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s %s: %w", flag, dir, bare(err))
	}
	for _, e := range entries {
		if name := e.Name(); name != "LOCK" && name != "lost+found" && name != memberDir+".partial" &&
			!strings.HasPrefix(name, atrest.RingFile) {
			return fmt.Errorf("%s %q not empty or could not be read: it holds %s. Choose another one: a restore replaces "+
				"nothing", flag[2:], dir, name)
		}
	}
	return nil
}
