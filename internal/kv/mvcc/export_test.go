package mvcc

import (
	"bytes"
	"errors"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// KeyCount returns the number of keys that exist at the published revision.
func (s *Store) KeyCount() int64 { return s.state.Load().numbers.keys }

// ForgetReplaced gives all changes a row each, without the name of the version that they replaced, as in a store below level.History.
func (s *Store) ForgetReplaced() error {
	eng := s.engine
	it, err := eng.NewIter(changeBounds(kv.Rev{}))
	if err != nil {
		return err
	}
	batch := eng.NewBatch()
	batch.DeleteRange(changeBounds(kv.Rev{}))
	scan := newChangeScan(it, s.form, kv.Rev{Main: max(s.compactor.done, 0)}, maxRev)
	if at := s.compactor.at; at != (kv.Rev{}) {
		scan.from = at // what is before has gone, though its pack may be there
	}
	for scan.next() {
		plain := change{kind: scan.change.kind, user: bytes.Clone(scan.change.user)}
		batch.Set(appendChangeKey(nil, scan.rev), appendChange(nil, &plain, scan.rev))
	}
	return errors.Join(scan.err, it.Close(), batch.Commit(), batch.Close())
}

// ChangeRows counts the rows that hold changes.
func (s *Store) ChangeRows() (rows int, err error) {
	it, err := s.engine.NewIter(changeBounds(kv.Rev{}))
	if err != nil {
		return 0, err
	}
	for valid := it.First(); valid; valid = it.Next() {
		rows++
	}
	return rows, errors.Join(it.Error(), it.Close())
}

// CompactAsBefore deletes what is dead below the compact revision as builds below level.History did: it looks at each version, and
// knows nothing of a walk that another build has begun.
func CompactAsBefore(eng engine.Engine) error {
	var target, done kv.Revision
	var versions, size int64
	if err := errors.Join(readNumbers(eng, compactRow, (*int64)(&target)),
		readNumbers(eng, droppedRow, (*int64)(&done), &versions, &size)); err != nil || target <= done {
		return err
	}
	it, err := eng.NewIter([]byte{tableVersions}, []byte{tableVersions + 1})
	if err != nil {
		return err
	}
	batch := eng.NewBatch()
	var prefix []byte
	decided := false
	for valid := it.First(); valid; valid = it.Next() {
		own, rev, _ := splitVersionKey(it.Key())
		if !bytes.Equal(own, prefix) {
			prefix, decided = bytes.Clone(own), false
		}
		if rev.Main > target {
			continue
		}
		keep := rev.Main == target || !decided && !isTombstone(it.Value())
		if decided = true; keep {
			continue
		}
		user, _ := appendUser(nil, prefix)
		versions++
		size += versionBytes(len(it.Key()), it.ValueLen(), len(user))
		batch.Delete(bytes.Clone(it.Key()))
	}
	batch.DeleteRange(appendChangeKey(nil, kv.Rev{}), appendChangeKey(nil, kv.Rev{Main: target}))
	batch.Set(droppedRow, appendNumbers(nil, int64(target), versions, size))
	return errors.Join(it.Error(), it.Close(), batch.Commit(), batch.Close(), eng.Flush())
}
