package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/files"
)

// formatKey and formatValue mark a store as ours. The row is written and flushed before anything else, and its table
// byte is no other's. It is the same at all feature levels: what a store holds above the first one says package kv/apply.
var (
	formatKey   = []byte("\x00quorate/format")
	formatValue = []byte("1")
)

// majorVersion is the format of Pebble's files. It does not follow the library's newest by itself, as older builds refuse a
// store of a later one: to raise it takes a feature level.
const majorVersion = pebble.FormatValueSeparation

// lsm is the Pebble engine. Its log is off: the member's log repeats what was not flushed.
type lsm struct {
	db      *pebble.DB
	cache   *pebble.Cache
	options Options

	separate separator
	pacing   pacing
	bounds   tableBounds

	stalled   atomic.Bool
	stalls    atomic.Uint64
	rewritten atomic.Uint64 // bytes of values, from one file of them into another
	begun     atomic.Bool   // Pebble's own goroutines have begun to write
	opened    atomic.Bool   // db is there
	closed    atomic.Bool   // Pebble panics when a closed store is asked

	mu       sync.Mutex
	failure  error         // a flush failed or a file is damaged: nothing can be committed from here on
	failed   chan struct{} // closed when failure is set
	flushErr error         // of the latest flush
}

// l0StopWrites is how many sublevels of L0 stop writes.
const l0StopWrites = 24

// crowdedL0 is how many sublevels of L0 end the rests of LSM compactions. With half as many, rests are half as long.
const crowdedL0 = l0StopWrites / 2

// memTablesInCache is how many memtables the cache has room for beside its blocks: Pebble takes the memory of memtables out of
// that of the cache.
const memTablesInCache = 2

// Open opens or creates a store on disk.
func Open(options Options) (Engine, error) {
	options = options.withDefaults()
	e := &lsm{options: options, failed: make(chan struct{})}
	e.cache = pebble.NewCache(options.CacheBytes + memTablesInCache*options.MemTableBytes)
	existed, err := exists(options.FS, options.Dir)
	if err == nil && !existed {
		err = refuseLeftovers(options.FS, options.Dir)
	}
	if err == nil {
		e.db, err = openPebble(options.Dir, e.pebbleOptions())
	}
	if err != nil {
		e.cache.Unref()
		return nil, openError(options.Dir, err)
	}
	e.opened.Store(true)
	if err := errors.Join(e.checkValueFiles(), e.checkFormat(existed)); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// openPebble opens a store.
func openPebble(dir string, options *pebble.Options) (db *pebble.DB, err error) {
	defer unsynced(&err)
	return pebble.Open(dir, options)
}

// unsynced is deferred. It turns Pebble's panic about a directory that cannot be synced into an error. Other panics, which
// are mistakes in a program, go on.
func unsynced(err *error) {
	switch r := recover().(type) {
	case nil:
	case runtime.Error:
		panic(r)
	case error:
		*err = r
	default:
		panic(r)
	}
}

// OpenView opens a store for reading only, with a cache of so many bytes, and no memtables but for the smallest. Whatever goes
// wrong in it is an error of the call that met it: a view is a copy, and no process ends with it.
func OpenView(fs env.FS, dir string, cacheBytes int64, logger *slog.Logger) (view Engine, err error) {
	defer func() {
		if r := recover(); r != nil { // Pebble's Fatalf may not return
			view, err = nil, fmt.Errorf("engine: open a view of %s: %v", dir, r)
		}
	}()
	return Open(Options{
		FS: fs, Dir: dir, ReadOnly: true, CacheBytes: cacheBytes, MemTableBytes: viewMemTableBytes, Logger: logger,
	})
}

// viewMemTableBytes is the memtable of a view, which stays empty.
const viewMemTableBytes = 256 << 10

// exists tells whether dir holds a store.
func exists(fs env.FS, dir string) (bool, error) {
	if _, err := fs.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	found, err := pebble.Peek(dir, files.ToPebble(fs))
	if err != nil {
		return false, err
	}
	return found.Exists, nil
}

// refuseLeftovers keeps Pebble from taking a store that lost its manifest marker for an empty directory: it would make
// a new one there and remove the tables. A creation that a crash cut short has no table yet.
func refuseLeftovers(fs env.FS, dir string) error {
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") || isValueFile(name) {
			return fmt.Errorf("%w: %s holds %s but no marker of a manifest; nothing was changed: replace this "+
				"member", ErrCorrupt, dir, name)
		}
	}
	return err
}

func (e *lsm) pebbleOptions() *pebble.Options {
	events := e.listener()
	fs := &storeFS{FS: files.ToPebble(e.options.FS), dir: e.options.Dir, failed: e.onPanicAhead}
	o := &pebble.Options{
		FS:                          fs,
		Cache:                       e.cache,
		Comparer:                    comparer,
		DisableWAL:                  true,
		ReadOnly:                    e.options.ReadOnly,
		FormatMajorVersion:          majorVersion,
		MemTableSize:                uint64(e.options.MemTableBytes),
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       8,
		L0StopWritesThreshold:       l0StopWrites,
		LBaseMaxBytes:               256 << 20,
		MaxOpenFiles:                4096,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 1 },
		Logger:                      pebbleLogger{engine: e},
		EventListener:               &events,
	}
	for i := range o.Levels {
		o.Levels[i].BlockSize = 8 << 10
		o.Levels[i].IndexBlockSize = 64 << 10
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	e.paceWork(o, fs)
	o.Experimental.L0CompactionConcurrency = 4
	o.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy { return e.separate.policy() }
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionFastest })
	return o
}

// paceWork sets up the pacers of a store before it is opened, and installs them if Options.Paced is set.
func (e *lsm) paceWork(o *pebble.Options, fs *storeFS) {
	all := &e.pacing
	urgent := func() bool {
		return e.closed.Load() || e.stalled.Load() || all.hurries.Load() > 0
	}
	all.flush = pacer{pace: flushPace, urgent: urgent, pressure: func() float64 { return 0 }}
	all.compaction = pacer{pace: compactionPace, urgent: urgent, pressure: e.crowding}
	for _, p := range []*pacer{&all.flush, &all.compaction} {
		p.memTable, p.commits = uint64(e.options.MemTableBytes), &all.commits
		p.now, p.sleep = time.Now, time.Sleep
	}
	if !e.options.Paced {
		return
	}
	fs.pacers = map[vfs.DiskWriteCategory]*pacer{ // by what Pebble calls them
		"pebble-memtable-flush":    &all.flush,
		"pebble-compaction":        &all.compaction,
		"pebble-blob-file-rewrite": &all.compaction,
	}
	// Flushes write to the first level. So do compactions within L0, of which there are none if one runs at a time.
	for i := range o.Levels {
		p := &all.compaction
		if i == 0 {
			p = &all.flush
		}
		o.Levels[i].FilterPolicy = pacedFilter{o.Levels[i].FilterPolicy, p}
	}
}

// crowding returns how full L0 is, 1 or more if LSM compactions must not rest. A store that is being opened has no hurry.
func (e *lsm) crowding() float64 {
	if !e.opened.Load() {
		return 0
	}
	return float64(e.db.Metrics().Levels[0].Sublevels) / crowdedL0 // db is open: Close waits for the compaction that calls this
}

// checkValueFiles tells whether the files of separated values are there, as far as their number and length can tell. Pebble
// checks that only for tables; of these files it would say so at the first read.
func (e *lsm) checkValueFiles() error {
	live := e.db.Metrics().BlobFiles
	if live.LiveCount == 0 {
		return nil
	}
	names, err := e.options.FS.List(e.options.Dir)
	if err != nil {
		return diskError(e.options.Dir, err)
	}
	var count, size uint64
	for _, name := range names {
		if !isValueFile(name) {
			continue
		}
		if info, err := e.options.FS.Stat(e.options.FS.PathJoin(e.options.Dir, name)); err == nil {
			count, size = count+1, size+uint64(info.Size())
		}
	}
	if count < live.LiveCount || size < live.LiveSize {
		return fmt.Errorf("%w: %s has %d files of values (%d bytes), its manifest names %d (%d bytes): replace this member",
			ErrCorrupt, e.options.Dir, count, size, live.LiveCount, live.LiveSize)
	}
	return nil
}

// checkFormat refuses a store that is not ours, and signs a new one.
func (e *lsm) checkFormat(existed bool) error {
	value, found, err := e.Get(formatKey)
	switch {
	case err != nil:
		return openError(e.options.Dir, err)
	case found && bytes.Equal(value, formatValue):
		return nil
	case found:
		return fmt.Errorf("%w: %s has format %q, this program knows %q: start the version that wrote it",
			ErrNewer, e.options.Dir, value, formatValue)
	}
	if existed || e.options.ReadOnly {
		empty, err := e.isEmpty()
		if err != nil {
			return openError(e.options.Dir, err)
		}
		if !empty || e.options.ReadOnly {
			return fmt.Errorf("%w: %s bears no format mark: it is not a store of this program; choose another directory",
				ErrCorrupt, e.options.Dir)
		}
	}
	if err := e.db.Set(formatKey, formatValue, pebble.NoSync); err != nil {
		return diskError(e.options.Dir, err)
	}
	return e.Flush()
}

// isEmpty tells a creation that a crash cut short from the store of another program.
func (e *lsm) isEmpty() (bool, error) {
	it, err := e.NewIter(nil, nil)
	if err != nil {
		return false, err
	}
	empty := !it.First()
	return empty, errors.Join(it.Error(), it.Close())
}

// Get implements Engine.
func (e *lsm) Get(key []byte) ([]byte, bool, error) {
	if e.closed.Load() {
		return nil, false, ErrClosed
	}
	value, closer, err := e.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, diskError(e.options.Dir, err)
	}
	own := append([]byte{}, value...)
	return own, true, closer.Close()
}

// GetDurable implements Engine.
func (e *lsm) GetDurable(key []byte) ([]byte, bool, error) {
	if e.closed.Load() {
		return nil, false, ErrClosed
	}
	it, err := e.db.NewIter(&pebble.IterOptions{OnlyReadGuaranteedDurable: true})
	if err != nil {
		return nil, false, diskError(e.options.Dir, err)
	}
	var value []byte
	found := it.SeekPrefixGE(key) && comparer.Equal(it.Key(), key)
	if found {
		value = append([]byte{}, it.Value()...)
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return nil, false, diskError(e.options.Dir, err)
	}
	return value, found, nil
}

// NewBatch implements Engine.
func (e *lsm) NewBatch() Batch { return &lsmBatch{engine: e, batch: e.db.NewBatch()} }

// Flush implements Engine.
func (e *lsm) Flush() error {
	e.pacing.hurries.Add(1)
	defer e.pacing.hurries.Add(-1)
	return e.flush()
}

// flush does not wait for a flush that fails: Pebble would try again for ever.
func (e *lsm) flush() error {
	if e.closed.Load() {
		return ErrClosed
	}
	if err := e.failureNow(); err != nil {
		return err
	}
	done, err := e.db.AsyncFlush()
	if err != nil {
		return diskError(e.options.Dir, err)
	}
	select {
	case <-done:
		return nil
	case <-e.failed:
		return e.failureNow()
	}
}

// Checkpoint implements Engine. Rows in the memtables are not part of Pebble's checkpoint without a log, hence the flush;
// commits that come between are in or not, in their order.
func (e *lsm) Checkpoint(dir string) error {
	if err := e.Flush(); err != nil {
		return err
	}
	if err := e.checkpoint(dir); err != nil {
		return diskError(dir, err)
	}
	return nil
}

// checkpoint makes the copy. Pebble holds no lock where it may panic about the directory of the copy.
func (e *lsm) checkpoint(dir string) (err error) {
	defer unsynced(&err)
	return e.db.Checkpoint(dir)
}

// Defragment implements Engine. Pebble rewrites a table only if one above overlaps it, which would leave separated values that
// nothing refers to any more where they are. A deletion of range keys, of which a store has none, overlaps all.
func (e *lsm) Defragment(ctx context.Context) error {
	if e.closed.Load() {
		return ErrClosed
	}
	e.pacing.hurries.Add(1)
	defer e.pacing.hurries.Add(-1)
	e.separate.rewriting.Add(1)
	defer e.separate.rewriting.Add(-1)
	least, most := []byte{0}, []byte{0xff, 0xff}
	if err := e.db.RangeKeyDelete(least, most, pebble.NoSync); err != nil {
		return diskError(e.options.Dir, err)
	}
	if err := e.Flush(); err != nil {
		return err
	}
	if err := e.db.Compact(ctx, least, most, true); err != nil {
		return diskError(e.options.Dir, err)
	}
	return nil
}

// Reclaim implements Engine. Tables that no deletion overlaps stay, and so do values of theirs that share a file with garbage:
// Pebble rewrites such files by itself, by their age.
func (e *lsm) Reclaim(ctx context.Context, hurry bool) error {
	if hurry {
		e.pacing.hurries.Add(1)
		defer e.pacing.hurries.Add(-1)
	}
	e.separate.rewriting.Add(1)
	defer e.separate.rewriting.Add(-1)
	if err := e.flush(); err != nil {
		return err
	}
	if err := e.db.Compact(ctx, []byte{0}, []byte{0xff, 0xff}, true); err != nil {
		return diskError(e.options.Dir, err)
	}
	return nil
}

// DiskBytes implements Engine.
func (e *lsm) DiskBytes(lower, upper []byte) (uint64, error) {
	if e.closed.Load() {
		return 0, ErrClosed
	}
	if lower == nil {
		lower = []byte{0}
	}
	if upper == nil {
		upper = []byte{0xff, 0xff}
	}
	size, err := e.db.EstimateDiskUsage(lower, upper)
	if err != nil {
		return 0, diskError(e.options.Dir, err)
	}
	return size, nil
}

// Close implements Engine.
func (e *lsm) Close() error {
	if e.closed.Swap(true) {
		return ErrClosed
	}
	err := e.db.Close()
	e.cache.Unref()
	if err != nil {
		return diskError(e.options.Dir, err)
	}
	return nil
}
