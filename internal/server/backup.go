package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/restore"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/reserve"
)

// Backup is a continuous backup, and the state of it that is wanted.
type Backup struct {
	Store   objects.Store
	Catalog *backup.Catalog
	Target  backup.Target
	Place   string // the place in words
	// Scratch is the directory in which VerifyBackup makes one for the store of the state, and removes it at the end; empty:
	// the system's for temporary files.
	Scratch  string
	Progress func(done, total int64) // bytes of objects; may be nil
	Damaged  func(error)             // is told of objects that other ones replace; may be nil
	// Open decrypts what is encrypted to recipients; nil: nothing that is can be read.
	Open backup.Opener
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
	return b.inScratch(ctx, func(*replay.State) error { return nil })
}

// inScratch restores the state into a directory of its own, which is removed at the end.
func (b *Backup) inScratch(ctx context.Context, use func(*replay.State) error) (_ *Proved, err error) {
	scratch, err := os.MkdirTemp(b.Scratch, "quorate-scratch-") // of a new name: nothing of an operator's is removed
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, files.Disk.RemoveAll(scratch)) }()
	var disk env.FS = files.Disk
	if b.Open != nil { // nothing that the place hides is left in the clear on this disk
		disk = atrest.NewFS(files.Disk, atrest.NewPassingRing(time.Now()))
	}
	return b.restore(ctx, replay.Options{FS: disk, Dir: filepath.Join(scratch, "store")}, use)
}

// restore restores the state into the directory of o, which does not exist, and calls use with it before its store is closed.
func (b *Backup) restore(ctx context.Context, o replay.Options, use func(*replay.State) error) (*Proved, error) {
	life, end := context.WithCancel(ctx)
	defer end()
	logger := slog.New(slog.DiscardHandler)
	o.Store, o.Damaged, o.Open, o.Apply.Store = b.Store, b.Damaged, b.Open, mvcc.Options{Life: life}
	o.OpenEngine = func(dir string) (engine.Engine, error) {
		return engine.Open(engine.Options{FS: o.FS, Dir: dir, Logger: logger, CacheBytes: replayCacheBytes})
	}
	o.OneHistory, o.Room = true, roomFor(o.FS, o.Dir)
	if b.Progress != nil {
		o.Progress = func(p replay.Progress) { b.Progress(p.Bytes, p.OfBytes) }
	}
	s, err := replay.Run(ctx, o, b.Catalog, b.Target)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(use(s), s.Close()); err != nil {
		return nil, err
	}
	return provedBy(s), nil
}

// roomFor refuses what the disk of a directory has no room for. A file system that cannot tell has room.
func roomFor(fs env.FS, dir string) func(bytes int64) error {
	return func(bytes int64) error {
		watch := reserve.New(fs, 0, dir)
		if _, err := watch.Look(); err != nil {
			return err
		}
		if has := watch.AvailableBytes(); uint64(bytes) > has {
			return fmt.Errorf("no room on the disk: the state takes about %d MiB in %s, and %d MiB are available there: free "+
				"some, or choose a directory of another disk", bytes>>20, dir, has>>20)
		}
		return nil
	}
}

func provedBy(s *replay.State) *Proved {
	return &Proved{At: s.At, Base: s.Plan.Base.Head(), Segments: len(s.Plan.Segments), Entries: s.Entries, Branches: s.Branches,
		Damaged: s.Damaged}
}

// replayCacheBytes is the block cache of the store that entries are applied to: most of their time is looking up what they
// replace.
const replayCacheBytes = 128 << 20

// into restores the state into the data directory that options name, as that of a member of a new cluster.
func (b *Backup) into(ctx context.Context, options datadir.Options, r *restore.Request, restored *Restored) error {
	return datadir.RestoreStore(options, func(dir string) (result *datadir.Restored, err error) {
		o := replay.Options{FS: options.FS, Dir: dir, Durable: true, Apply: apply.Options{MostLeases: options.Apply.MostLeases}}
		restored.Proved, err = b.restore(ctx, o,
			func(s *replay.State) error {
				made, contents, err := restore.Refound(s.Machine, &s.At, r)
				if err == nil {
					result, restored.Result = made, *contents
				}
				return err
			})
		return result, err
	})
}

// ReadBackup restores a state into a scratch directory, calls use with it, and drops it.
func ReadBackup(ctx context.Context, b *Backup, use func(*mvcc.Store, *Proved) error) error {
	_, err := b.inScratch(ctx, func(s *replay.State) error { return use(s.Machine.Store(), provedBy(s)) })
	return err
}
