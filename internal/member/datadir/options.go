package datadir

import (
	"log/slog"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Options say where a member's data is and how its store is opened.
type Options struct {
	FS     env.FS
	Dir    string // for everything but the log
	WALDir string // empty: Dir/wal
	NoSync bool
	// SegmentBytes is the size of a WAL segment; zero: the WAL's default.
	SegmentBytes int64
	OpenEngine   func(dir string) (engine.Engine, error)
	Apply        apply.Options
	Logger       *slog.Logger
	// PackFrom is the size in bytes from which a record of the log is packed; zero: the WAL's default. The simulator sets it.
	PackFrom int
	// Written, if set, is called before each sync of the log.
	Written func()
	// Nonce draws the random part of a life, and of an epoch; nil: the system's random number generator.
	Nonce func() uint64
	// OpenView opens a copy of a store read-only: an error there says nothing about the member's own store. Nil: OpenEngine.
	OpenView func(dir string) (engine.Engine, error)
	// Keys, if set, are those of an encrypted directory: FS encrypts all other files with them, and the log, which is
	// written in place, lies on Below, the disk below FS, and seals its records itself.
	Keys  *atrest.Ring
	Below env.FS
}

// View opens a copy of a store read-only.
func (o *Options) View(dir string) (engine.Engine, error) {
	if o.OpenView != nil {
		return o.OpenView(dir)
	}
	return o.OpenEngine(dir)
}

func (o *Options) walDir() string {
	if o.WALDir != "" {
		return o.WALDir
	}
	return o.FS.PathJoin(o.Dir, "wal")
}

const firstGeneration = 1

func (o *Options) storeDir(generation uint64) string {
	return snapshot.StorePath(o.FS, o.Dir, generation)
}

// WorkDir is where snapshots are built and received. Open empties it.
func (o *Options) WorkDir() string { return o.FS.PathJoin(o.Dir, snapshot.WorkDir) }

func (o *Options) bootsFile() string { return o.FS.PathJoin(o.Dir, "boots") }

// WAL returns the options of the log.
func (o *Options) WAL() wal.Options {
	fs := o.FS
	if o.Keys != nil {
		fs = o.Below
	}
	return wal.Options{FS: fs, Dir: o.walDir(), NoSync: o.NoSync, SegmentBytes: o.SegmentBytes, Logger: o.Logger,
		Written: o.Written, PackFrom: o.PackFrom, Keys: o.Keys}
}
