package mvcc

import (
	"encoding/binary"
	"fmt"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Rows of the numbers table. Each has one owner, so that the writer and the physical compaction never race for one.
var (
	writtenRow = []byte{tableNumbers, 'w'} // writer: revision, keys, versions and bytes ever written
	compactRow = []byte{tableNumbers, 'c'} // writer: compact revision
	droppedRow = []byte{tableNumbers, 'd'} // compactor: revision done, versions and bytes ever deleted
	walkedRow  = []byte{tableNumbers, 'k'} // compactor: compact revision of its walk, main and sub of its next change
)

const noCompaction = kv.Revision(-1)

// numbers are the running totals that the writer keeps.
type numbers struct {
	keys     int64 // that exist now
	versions int64 // ever written
	bytes    int64 // ever written, keys and values as stored, before compression
}

// Size describes how big the store is.
type Size struct {
	Keys           int64 // at the published revision
	Versions       int64 // kept: live, historic and tombstones
	LogicalBytes   int64 // of the kept versions, uncompressed, incl. their rows in the table of changes
	DiskBytes      int64 // files of the whole engine, as the file system sees them
	UnflushedBytes int64 // in the engine's memory only
}

// Size returns the store's size.
func (s *Store) Size() Size {
	current := s.state.Load().numbers
	stats := s.engine.Stats()
	return Size{
		Keys:           current.keys,
		Versions:       current.versions - s.compactor.droppedVersions.Load(),
		LogicalBytes:   current.bytes - s.compactor.droppedBytes.Load(),
		DiskBytes:      int64(stats.DiskBytes),
		UnflushedBytes: int64(stats.MemTableBytes),
	}
}

// LogicalBytes is Size.LogicalBytes alone, cheap enough for every proposal: it does not ask the engine.
func (s *Store) LogicalBytes() int64 {
	return s.state.Load().numbers.bytes - s.compactor.droppedBytes.Load()
}

// CacheStats are counters of the cache of current versions.
type CacheStats struct {
	Hits, Misses int64
	Bytes        int64
}

// CacheStats returns the counters since Open.
func (s *Store) CacheStats() CacheStats {
	return CacheStats{Hits: s.cache.hits.load(), Misses: s.cache.misses.load(), Bytes: int64(s.cache.sizeBytes())}
}

func appendNumbers(dst []byte, values ...int64) []byte {
	for _, v := range values {
		dst = binary.AppendVarint(dst, v)
	}
	return dst
}

// readNumbers reads values from a row, and leaves them if there is none.
func readNumbers(eng engine.Engine, row []byte, values ...*int64) error {
	buf, found, err := eng.Get(row)
	if err != nil {
		return fmt.Errorf("mvcc: read the numbers of the store: %w", err)
	}
	if !found {
		return nil
	}
	for _, v := range values {
		number, n := binary.Varint(buf)
		if n <= 0 {
			return fmt.Errorf("%w: numbers %q", ErrCorruptRow, row)
		}
		*v, buf = number, buf[n:]
	}
	return nil
}

func loadNumbers(eng engine.Engine, into *state) error {
	n := &into.numbers
	if err := readNumbers(eng, writtenRow, (*int64)(&into.revision), &n.keys, &n.versions, &n.bytes); err != nil {
		return err
	}
	return readNumbers(eng, compactRow, (*int64)(&into.compact))
}
