package mvcc

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/census"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Options of Open.
type Options struct {
	// CacheBytes bounds the cache of current versions. Zero means DefaultCacheBytes, negative none.
	CacheBytes int
	// Census sets how finely keys are counted, and the memory for that.
	Census census.Options
	// Life cuts long work (hashing) short when it ends; nil: it never does.
	Life context.Context
}

// DefaultCacheBytes holds about 70,000 keys with values of 256 bytes.
const DefaultCacheBytes = 24 << 20

// state is the state that the writer publishes with each commit. It is immutable.
type state struct {
	revision kv.Revision
	compact  kv.Revision // reads below are refused; -1: never compacted
	numbers  numbers
}

// Store is the versioned store.
type Store struct {
	hashes knownHashes
	engine engine.Engine
	cache  *cache
	pages  pages
	census *census.Census
	state  atomic.Pointer[state]
	life   context.Context

	writer Writer
	begun  atomic.Bool

	compactor compactor
	scratch   sync.Pool // *[]byte for engine keys
}

// Open reads the state from the engine. The store does not own the engine.
func Open(eng engine.Engine, options Options) (*Store, error) {
	if options.CacheBytes == 0 {
		options.CacheBytes = DefaultCacheBytes
	}
	s := &Store{engine: eng, cache: newCache(max(options.CacheBytes, 0)), life: options.Life}
	if s.life == nil {
		s.life = context.Background()
	}
	s.scratch.New = func() any { return new([]byte) }
	first := &state{revision: 1, compact: noCompaction}
	if err := loadNumbers(eng, first); err != nil {
		return nil, err
	}
	s.state.Store(first)
	s.census = census.New(first.numbers.keys == 0, first.revision, options.Census)
	s.compactor = compactor{store: s, done: noCompaction}
	if err := s.compactor.load(); err != nil {
		return nil, err
	}
	s.writer.init(s)
	return s, nil
}

// Revision returns the published revision: 1 for a store without writes.
func (s *Store) Revision() kv.Revision { return s.state.Load().revision }

// CompactRevision returns the revision below which reads are refused, -1 if there never was a compaction.
func (s *Store) CompactRevision() kv.Revision { return s.state.Load().compact }

// Begin returns the writer. The previous use must have ended with Commit.
func (s *Store) Begin() *Writer {
	invariant.True(s.begun.CompareAndSwap(false, true), "one writer at a time at revision %d", s.Revision())
	s.writer.begin(s.state.Load())
	return &s.writer
}

// checkRevision returns the revision to read at. Negative means now, as zero does.
func checkRevision(asked, current, compact kv.Revision) (kv.Revision, error) {
	switch {
	case asked <= 0:
		return current, nil
	case asked > current:
		return 0, kv.ErrFutureRevision
	case asked < compact:
		return 0, kv.ErrCompacted
	}
	return asked, nil
}

// CheckTxnRevision reports whether a transaction may read at a revision, by the rule for transactions.
func (s *Store) CheckTxnRevision(asked kv.Revision) error {
	current := s.state.Load()
	return checkTxnRevision(asked, current.revision, current.compact)
}

// checkTxnRevision is etcd's rule for ranges in transactions: only zero means now. A negative revision is refused as
// compacted, unless it is -1 and there was no compaction.
func checkTxnRevision(asked, current, compact kv.Revision) error {
	switch {
	case asked == 0:
		return nil
	case asked > current:
		return kv.ErrFutureRevision
	case asked < compact:
		return kv.ErrCompacted
	}
	return nil
}

// newIter takes an iterator and then makes sure that rev was not compacted before it was taken (invariant 3).
func (s *Store) newIter(lower, upper []byte, rev kv.Revision) (engine.Iterator, error) {
	it, err := s.engine.NewIter(lower, upper)
	if err != nil {
		return nil, fmt.Errorf("mvcc: iterate at revision %d: %w", rev, err)
	}
	if rev < s.state.Load().compact {
		if err := it.Close(); err != nil {
			return nil, fmt.Errorf("mvcc: close an iterator: %w", err)
		}
		return nil, kv.ErrCompacted
	}
	return it, nil
}

// Get returns the key at the published revision, nil if it does not exist.
func (s *Store) Get(key []byte) (found *kv.KeyValue, err error) {
	_, err = s.atRevision(0, func(rev kv.Revision) error {
		found, _, err = s.getAt(key, rev, nil)
		return err
	})
	return found, err
}

// ValueLen returns about how long the value of a key is at the published revision; zero if there is none. It does not read the
// value.
func (s *Store) ValueLen(key []byte) (size int, err error) {
	_, err = s.atRevision(0, func(rev kv.Revision) error {
		if found, _, ok := s.cache.get(key, rev); ok {
			if size = 0; found != nil {
				size = len(found.Value)
			}
			return nil
		}
		return s.seek(key, allOf(rev), rev, func(_ engine.Iterator, _ kv.Rev, row int) error {
			size = row
			return nil
		})
	})
	return size, err
}

// getAt returns the key at rev, which is published. taken reports that a large pair was taken from account.
func (s *Store) getAt(key []byte, rev kv.Revision, account kv.Account) (found *kv.KeyValue, taken bool, err error) {
	if found, _, ok := s.cache.get(key, rev); ok {
		return found, false, nil
	}
	seen := s.Revision() // before the iterator, which has everything up to here
	found, since, taken, err := s.load(key, allOf(rev), rev, account)
	if err == nil && rev == seen {
		s.learn(key, found, since, seen)
	}
	return found, taken, err
}

// getBare is getAt, perhaps without the value.
func (s *Store) getBare(key []byte, rev kv.Revision) (found *kv.KeyValue, taken bool, err error) {
	if found, _, ok := s.cache.get(key, rev); ok {
		return found, false, nil
	}
	found, err = s.loadBare(key, allOf(rev), rev)
	return found, false, err
}

// loadBare is load without the value.
func (s *Store) loadBare(key []byte, at kv.Rev, needs kv.Revision) (found *kv.KeyValue, err error) {
	err = s.seek(key, at, needs, func(it engine.Iterator, since kv.Rev, size int) (err error) {
		if size > 0 {
			found, err = bareAt(it, key, since)
		}
		return err
	})
	return found, err
}

// learn puts a version into the cache that was read at the revision seen, which was the published one before the read. since is
// the change that wrote it, zero if there is none.
func (s *Store) learn(key []byte, found *kv.KeyValue, since kv.Rev, seen kv.Revision) {
	if since == (kv.Rev{}) {
		since.Main = seen
	}
	s.cache.learn(key, found, since, seen)
}

// load reads the key as of a change, past the cache, which only knows whole revisions. It needs the history from revision needs
// on.
//
// With an account, a large pair is taken from it before it is read: a read that waits for room holds neither the pair nor an
// iterator. taken reports that it was.
func (s *Store) load(
	key []byte, at kv.Rev, needs kv.Revision, account kv.Account,
) (found *kv.KeyValue, since kv.Rev, taken bool, err error) {
	large := 0
	err = s.seek(key, at, needs, func(it engine.Iterator, made kv.Rev, size int) (err error) {
		since = made
		switch {
		case size == 0:
		case account != nil && size >= takeAtOnce:
			large = size
		default:
			found, err = versionAt(it, key, made)
		}
		return err
	})
	if large == 0 || err != nil {
		return found, since, false, err
	}
	if err := account.Take(len(key) + large + pairOverhead); err != nil {
		return nil, kv.Rev{}, false, err
	}
	found, since, _, err = s.load(key, at, needs, nil)
	return found, since, true, err
}

// seek calls see with an iterator at the row of key as of a change, the change that wrote the row, and its length: zero if
// there is none.
func (s *Store) seek(
	key []byte, at kv.Rev, needs kv.Revision, see func(it engine.Iterator, since kv.Rev, size int) error,
) error {
	it, err := s.newIter(nil, nil, needs)
	if err != nil {
		return err
	}
	buf := s.scratch.Get().(*[]byte)
	since, size, err := seekVersion(it, buf, key, at)
	if err == nil {
		err = see(it, since, size)
	}
	s.scratch.Put(buf)
	if closeErr := it.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("mvcc: close an iterator: %w", closeErr)
	}
	return err
}

// lookupRow finds the row of key as of the change rev, a version or a tombstone; nil if there is none. The row is valid until
// the iterator moves. since is the change that wrote it, zero if there is none.
func lookupRow(it engine.Iterator, buf *[]byte, key []byte, rev kv.Rev) (row []byte, since kv.Rev, err error) {
	since, size, err := seekVersion(it, buf, key, rev)
	if size == 0 || err != nil {
		return nil, since, err
	}
	row = it.Value()
	if err := it.Error(); err != nil {
		return nil, since, fmt.Errorf("mvcc: look up a key: %w", err)
	}
	return row, since, nil
}

// seekVersion moves to the row of key as of the change rev, and returns the change that wrote it and its length. That is zero
// if there is none: no row is empty.
func seekVersion(it engine.Iterator, buf *[]byte, key []byte, rev kv.Rev) (since kv.Rev, size int, err error) {
	*buf = appendVersionKey((*buf)[:0], key, rev)
	if !it.SeekPrefix(*buf) {
		if err := it.Error(); err != nil {
			return since, 0, fmt.Errorf("mvcc: look up a key: %w", err)
		}
		return since, 0, nil
	}
	_, since, ok := splitVersionKey(it.Key())
	if !ok {
		return since, 0, fmt.Errorf("%w: version key %x", ErrCorruptRow, it.Key())
	}
	return since, max(1, it.ValueLen()), nil
}

// versionAt makes a KeyValue of the row at which an iterator is, nil for a tombstone.
func versionAt(it engine.Iterator, key []byte, since kv.Rev) (*kv.KeyValue, error) {
	found, err := loadVersion(key, it.Value(), since.Main)
	if readErr := it.Error(); readErr != nil {
		err = fmt.Errorf("mvcc: look up a key: %w", readErr)
	}
	return found, err
}

// bareAt is versionAt without the value.
func bareAt(it engine.Iterator, key []byte, since kv.Rev) (*kv.KeyValue, error) {
	rec, err := decodeRecord(it.Value(), since.Main)
	if readErr := it.Error(); readErr != nil {
		err = fmt.Errorf("mvcc: look up a key: %w", readErr)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: key %q at revision %d", err, key, since.Main)
	}
	if rec.tombstone {
		return nil, nil
	}
	return &kv.KeyValue{
		Key: bytes.Clone(key), CreateRevision: rec.create, ModRevision: since.Main, Version: rec.version, Lease: rec.lease,
	}, nil
}

// loadVersion makes a KeyValue of its own from a row, nil for a tombstone.
func loadVersion(key, row []byte, mod kv.Revision) (*kv.KeyValue, error) {
	rec, err := decodeRecord(row, mod)
	if err != nil {
		return nil, fmt.Errorf("%w: key %q at revision %d", err, key, mod)
	}
	if rec.tombstone {
		return nil, nil
	}
	buf := make([]byte, len(key)+len(rec.value))
	n := copy(buf, key)
	copy(buf[n:], rec.value)
	return &kv.KeyValue{
		Key: buf[:n:n], Value: buf[n:], CreateRevision: rec.create, ModRevision: mod, Version: rec.version, Lease: rec.lease,
	}, nil
}
