package mvcc

import (
	"bytes"
	"errors"
	"fmt"
	"hash"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Loader fills an empty engine with the history of another store, before it is opened:
//
//	l := NewLoader(eng, digest)
//	for each version, in the order of revisions { l.AddVersion(...) }
//	l.VisitKeys(compact, ...)
//	l.Finish(revision, compact)
//
// Rows of other tables go through Set. The digest covers these rows and the keys of VisitKeys: as with HashKV, it does not
// depend on rows that a compaction has begun to delete.
type Loader struct {
	engine engine.Engine
	batch  engine.Batch
	digest hash.Hash
	last   kv.Rev
	totals numbers
	pack   pack // of changes that are not in the batch yet

	key, row []byte
	err      error
}

// loadBatchBytes is the size of one commit.
const loadBatchBytes = 1 << 20

// NewLoader begins to fill an engine.
func NewLoader(eng engine.Engine, digest hash.Hash) *Loader {
	return &Loader{engine: eng, batch: eng.NewBatch(), digest: digest}
}

// AddVersion adds one version, which the caller has checked: its revision is positive, and no lower than that of its creation.
// Versions come in rising order. Of a tombstone only the key counts.
func (l *Loader) AddVersion(rev kv.Rev, tombstone bool, p *kv.KeyValue) error {
	if rev.Main < l.last.Main || rev.Main == l.last.Main && l.last.Main > 0 && rev.Sub <= l.last.Sub {
		return fmt.Errorf("%w: revision %d.%d comes after %d.%d", ErrCorruptRow, rev.Main, rev.Sub, l.last.Main, l.last.Sub)
	}
	l.last = rev
	v := pendingVersion{rev: rev, tombstone: tombstone, kv: *p}
	rec := v.record()
	l.key = appendVersionKey(l.key[:0], p.Key, rev)
	l.row = appendRecord(l.row[:0], &rec, rev.Main)
	l.totals.versions++
	l.totals.bytes += versionBytes(len(l.key), len(l.row), len(p.Key))
	l.batch.Set(l.key, l.row)
	c := change{kind: v.changeKind(), user: p.Key}
	if !l.pack.takes(&c, rev) {
		l.pack.flush(l.batch)
	}
	l.pack.add(&c, rev)
	l.writeLarge()
	return l.err
}

// Set writes a row. The error is kept for Finish.
func (l *Loader) Set(key, value []byte) {
	l.digestRow(key, value)
	l.batch.Set(key, value)
	l.writeLarge()
}

func (l *Loader) digestRow(key, value []byte) {
	for _, part := range [][]byte{key, value} {
		_, _ = fmt.Fprintf(l.digest, "%d ", len(part))
		_, _ = l.digest.Write(part)
	}
}

func (l *Loader) writeLarge() {
	if l.batch.Len() >= loadBatchBytes {
		l.write()
	}
}

// DeleteRaw deletes a row of another table. It is not added to the digest.
func (l *Loader) DeleteRaw(key []byte) { l.batch.Delete(key) }

func (l *Loader) write() {
	l.pack.flush(l.batch)
	if l.err == nil {
		l.err = l.batch.Commit()
	}
	l.err = errors.Join(l.err, l.batch.Close())
	l.batch = l.engine.NewBatch()
}

// LastRevision is the revision of the last version.
func (l *Loader) LastRevision() kv.Revision { return l.last.Main }

// VisitKeys visits the keys that exist, in order, with the leases that they are attached to. visit may call Set. It adds to the
// digest the versions that a store compacted at compact still shows.
func (l *Loader) VisitKeys(compact kv.Revision, visit func(user []byte, lease kv.LeaseID)) (err error) {
	l.write()
	if l.err != nil {
		return l.err
	}
	it, err := l.engine.NewIter([]byte{tableVersions}, []byte{tableVersions + 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Error(), it.Close(), l.err) }()
	l.totals.keys = 0
	var prefix []byte
	decided := false // the newest version at or below the compact revision was seen
	for valid := it.First(); valid; valid = it.Next() {
		own, rev, ok := splitVersionKey(it.Key())
		if !ok {
			return fmt.Errorf("%w: version key %x", ErrCorruptRow, it.Key())
		}
		newest := !bytes.Equal(own, prefix)
		if newest {
			prefix, decided = append(prefix[:0], own...), false
		}
		if shown := rev.Main > compact || !decided && !isTombstone(it.Value()); shown {
			l.digestRow(it.Key(), it.Value())
		}
		decided = decided || rev.Main <= compact
		if !newest {
			continue
		}
		if err := l.visitKey(prefix, it.Value(), rev.Main, visit); err != nil {
			return err
		}
	}
	return nil
}

func (l *Loader) visitKey(prefix, row []byte, mod kv.Revision, visit func(user []byte, lease kv.LeaseID)) error {
	rec, err := decodeRecord(row, mod)
	if err != nil || rec.tombstone {
		return err
	}
	user, ok := appendUser(nil, prefix)
	if !ok {
		return fmt.Errorf("%w: prefix %x", ErrCorruptRow, prefix)
	}
	l.totals.keys++
	visit(user, rec.lease)
	return nil
}

// Finish makes all rows durable. The store will be at revision, which is that of the last version or later, and history below
// compact, if that is positive, is not readable, though its rows are deleted only by CompactStep. VisitKeys was called before.
func (l *Loader) Finish(revision, compact kv.Revision) error {
	n := &l.totals
	revision = max(revision, l.last.Main, 1)
	l.digestRow(writtenRow, appendNumbers(nil, int64(revision), n.keys, int64(compact)))
	l.batch.Set(writtenRow, appendNumbers(nil, int64(revision), n.keys, n.versions, n.bytes))
	if compact > 0 {
		l.batch.Set(compactRow, appendNumbers(nil, int64(compact)))
	}
	l.write()
	l.err = errors.Join(l.err, l.batch.Close())
	if l.err != nil {
		return fmt.Errorf("mvcc: load up to revision %d: %w", l.last.Main, l.err)
	}
	return l.engine.Flush()
}

// Discard releases what the loader holds, after an error.
func (l *Loader) Discard() { _ = l.batch.Close() }
