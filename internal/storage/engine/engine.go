package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/files"
)

// LocalTable is the first byte of the keys that differ between members which hold the same state.
const LocalTable = 'i'

// Engine is an ordered key-value store with atomic batches.
type Engine interface {
	// Get returns a copy that the caller may keep.
	Get(key []byte) (value []byte, found bool, err error)
	// GetDurable is Get on the state that a power loss at this moment would leave.
	GetDurable(key []byte) (value []byte, found bool, err error)
	// NewIter iterates over [lower, upper); nil means unbounded, and lower must be below
	// upper. The bounds must not be modified before Close. Keys that
	// begin with 0x00 are the engine's own and not seen.
	NewIter(lower, upper []byte) (Iterator, error)
	NewBatch() Batch
	// Flush makes everything committed so far durable.
	Flush() error
	// Checkpoint flushes, then writes a store of its own into dir, which must not exist. It can be opened by Open.
	Checkpoint(dir string) error
	// Defragment rewrites the tables so that the space of deleted keys is free on return. When ctx ends it stops between
	// two tables, and what was rewritten stays so.
	Defragment(ctx context.Context) error
	// Reclaim flushes, and rewrites the tables that deletions overlap, so that what they deleted is gone on return. It is paced
	// as background work is, unless hurry is set. When ctx ends it stops between two tables.
	Reclaim(ctx context.Context, hurry bool) error
	// DiskBytes estimates how much of the disk the keys in [lower, upper) take; what is not flushed counts as zero.
	DiskBytes(lower, upper []byte) (uint64, error)
	Stats() Stats
	// BoundBytes is what Stats says under that name, and costs next to nothing while no tables come or go.
	BoundBytes() int64
	// Close releases the files. It does not flush: what was not flushed is lost, as in a crash.
	Close() error
}

// Iterator walks over keys in order. The slices of Key and Value are valid until the next move.
// A false return of a move means the end or an error: ask Error.
type Iterator interface {
	First() bool
	Last() bool
	SeekGE(key []byte) bool
	SeekLT(key []byte) bool
	// SeekPrefix goes to the first key >= key among those with key's prefix; Next then stays within the prefix, other
	// moves but a seek are not allowed. It can skip whole files by their filters: the cheap way to look up one key.
	SeekPrefix(key []byte) bool
	Next() bool
	Prev() bool
	// NextPrefix goes to the first key with a larger prefix. The upper bound must not have a suffix.
	NextPrefix() bool
	Valid() bool
	Key() []byte
	Value() []byte
	// ValueLen is the length of Value. It reads no value that lies apart from its key.
	ValueLen() int
	Error() error
	Close() error
}

// Batch collects writes that become visible together. Keys and values are copied. After Commit only Close and Reset are
// allowed.
type Batch interface {
	Set(key, value []byte)
	Delete(key []byte)
	// SingleDelete is Delete for a key that was set only once in the life of the store. It leaves no trace where it meets
	// what it deletes.
	SingleDelete(key []byte)
	// DeleteRange deletes [lower, upper) as it is at this point of the batch.
	DeleteRange(lower, upper []byte)
	// Len is the size in bytes.
	Len() int
	Empty() bool
	// Commit makes the writes visible, without waiting for the disk.
	Commit() error
	// Reset empties the batch for another use.
	Reset()
	Close() error
}

// Stats is a snapshot of the engine's counters.
type Stats struct {
	L0Files, L0Sublevels int
	ReadAmplification    int
	MemTableBytes        uint64 // in memory, not yet flushed
	DiskBytes            uint64 // all files of the store
	LiveBytes            uint64 // tables less what is known to be garbage
	BoundBytes           int64  // in memory: the first and the last keys of all tables
	FlushedBytes         uint64 // written by flushes since Open
	CompactedBytes       uint64 // written by LSM compactions since Open
	// FlushedValues and CompactedValues are how much of the two went into files of values that lie apart; RewrittenValues is
	// what was copied, to get rid of garbage, from one such file into another, and is part of neither.
	FlushedValues, CompactedValues, RewrittenValues uint64
	Flushes, Compactions                            int64
	FlushRests, CompactionRests                     time.Duration // how long their work rested: see Options.Paced
	CompactionDebtBytes                             uint64
	CacheBytes                                      int64
	CacheHits                                       int64
	CacheMisses                                     int64
	// Stalled is true while writes wait for flushes or LSM compactions. Admission control should refuse well before:
	// see Pressure.
	Stalled bool
	Stalls  uint64
	// Pressure is how near the engine is to a write stall: 0 idle, 1 stalled.
	Pressure float64
}

// Options of Open. The zero value of a number means its default.
type Options struct {
	FS            env.FS
	Dir           string
	CacheBytes    int64 // block cache, default 32 MiB
	MemTableBytes int64 // default 32 MiB; one is filled while another is written to disk, and two more may wait
	ReadOnly      bool  // the store must exist, and nothing but its lock file is touched
	Paced         bool  // flushes and LSM compactions leave processors to requests, as long as they are not late
	Logger        *slog.Logger
	// Flushed, if set, is told how long each flush worked, without its rests. The rules of OnFlush hold for it, too.
	Flushed func(took time.Duration)
	// OnFlush is called after each flush that made something durable. It may run inside the engine's locks: it must not
	// block nor call the engine, only signal.
	OnFlush func()
	// OnFatal is called when the engine cannot go on (its manifest cannot be written). It should end the process after
	// its own goodbye; if it is nil or returns, the engine panics with a line that names the cause.
	OnFatal func(error)
}

// Defaults of Options.
const (
	DefaultCacheBytes    = 32 << 20
	DefaultMemTableBytes = 32 << 20
)

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = files.Disk
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.MemTableBytes <= 0 {
		o.MemTableBytes = DefaultMemTableBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
