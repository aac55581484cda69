package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/etcdfile"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Backup is a continuous backup, and the state of it that is wanted.
type Backup struct {
	Store   objects.Store
	Catalog *backup.Catalog
	Target  backup.Target
	Place   string // the place in words
	// Scratch is the directory in which one for the store of the state is made, and removed at the end; empty: the system's for
	// temporary files.
	Scratch  string
	Progress func(done, total int64) // bytes of objects; may be nil
	Damaged  func(error)             // is told of objects that other ones replace; may be nil
	fs       env.FS                  // of the store of the state, encrypted if a directory is; nil: the disk
}

// Proved is a state that was restored, whose chain has the sum that the cluster's had.
type Proved struct {
	At       backup.Head
	Base     backup.Head
	Segments int
	Entries  int // that were applied after the base
	Branches int // segments with which another member went on
	Damaged  []error
}

// VerifyBackup restores a state and drops it: the sums of all its entries were the cluster's, or the error says what differs.
func VerifyBackup(ctx context.Context, b *Backup) (*Proved, error) {
	return b.restore(ctx, apply.Options{}, func(string, *apply.Machine) error { return nil })
}

// restore restores the state, and calls f with it.
func (b *Backup) restore(
	ctx context.Context, options apply.Options, f func(scratch string, m *apply.Machine) error,
) (_ *Proved, err error) {
	if b.fs == nil {
		b.fs = files.Disk
	}
	life, end := context.WithCancel(ctx)
	defer end()
	options.Store = mvcc.Options{Life: life}
	logger := slog.New(slog.DiscardHandler)
	scratch, err := os.MkdirTemp(b.Scratch, "quorate-scratch-") // of a new name: nothing of an operator's is removed
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, files.Disk.RemoveAll(scratch)) }()
	o := replay.Options{Store: b.Store, FS: b.fs, Dir: filepath.Join(scratch, "store"), Apply: options,
		Damaged: b.Damaged, OpenEngine: func(dir string) (engine.Engine, error) {
			return engine.Open(engine.Options{FS: b.fs, Dir: dir, Logger: logger, CacheBytes: replayCacheBytes})
		},
	}
	if b.Progress != nil {
		o.Progress = func(p replay.Progress) { b.Progress(p.Bytes, p.OfBytes) }
	}
	s, err := replay.Run(ctx, o, b.Catalog, b.Target)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f(scratch, s.Machine), s.Close()); err != nil {
		return nil, err
	}
	return &Proved{At: s.At, Base: s.Plan.Base.Head(), Segments: len(s.Plan.Segments), Entries: s.Entries, Branches: s.Branches,
		Damaged: s.Damaged}, nil
}

// replayCacheBytes is the block cache of the store that entries are applied to: most of their time is looking up what they
// replace.
const replayCacheBytes = 128 << 20

// fileMemory is what writing a file of the state takes.
const fileMemory = 32 << 20

// file restores the state into a file in the form of etcd's, which a restore reads.
func (b *Backup) file(ctx context.Context, mostLeases int64, use func(name string) error) (*Proved, error) {
	return b.restore(ctx, apply.Options{MostLeases: mostLeases}, func(scratch string, m *apply.Machine) error {
		plan := etcdfile.Plan{Name: filepath.Join(scratch, "state.db"), Memory: fileMemory,
			Expected: 2*m.Store().LogicalBytes() + fileMemory, Storage: config.EtcdVersion, Cluster: config.EtcdVersion}
		if err := plan.Write(ctx, m); err != nil {
			return err
		}
		return use(plan.Name)
	})
}
