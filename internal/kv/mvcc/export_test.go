package mvcc

import (
	"bytes"
	"errors"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// KeyCount returns the number of keys that exist at the published revision.
func (s *Store) KeyCount() int64 { return s.state.Load().numbers.keys }

// ForgetReplaced takes the names of the versions that they replaced out of all changes, as in a store below level.History.
func ForgetReplaced(eng engine.Engine) error {
	it, err := eng.NewIter([]byte{tableChanges}, []byte{tableChanges + 1})
	if err != nil {
		return err
	}
	batch := eng.NewBatch()
	for valid := it.First(); valid && err == nil; valid = it.Next() {
		rev, _ := decodeChangeKey(it.Key())
		c, ok := decodeChange(it.Value(), rev)
		if !ok {
			err = ErrCorruptRow
		}
		batch.Set(bytes.Clone(it.Key()), appendChange(nil, &change{kind: c.kind, user: bytes.Clone(c.user)}, rev))
	}
	return errors.Join(err, it.Error(), it.Close(), batch.Commit(), batch.Close())
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
