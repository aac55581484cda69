package mvcc

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// CheckAt reports whether the condition holds at a published revision; zero is now. Its looks are subtracted from left, unless
// that is nil; when left is used up it ends, and returns false. An error of account, which may be nil, ends it, too.
func (s *Store) CheckAt(c *kv.Compare, rev kv.Revision, account kv.Account, left *int64) (holds bool, err error) {
	_, err = s.atRevision(rev, func(rev kv.Revision) error {
		holds, err = s.holdsAt(c, rev, account, left)
		return err
	})
	return holds, err
}

func (s *Store) holdsAt(c *kv.Compare, rev kv.Revision, account kv.Account, left *int64) (bool, error) {
	if isEmptyRange(c.Key, c.End) {
		return holdsFor(c, nil), nil
	}
	look := looks{left: left}
	if isSingle(c.End) {
		if found, _, ok := s.cache.get(c.Key, rev); ok {
			return look.one(c, found) && !look.over(), nil
		}
		seen := s.Revision() // before the iterator, which has everything up to here
		return s.holdsOne(c, allOf(rev), rev, account, left, func(found *kv.KeyValue, since kv.Rev) {
			if rev == seen {
				s.learn(c.Key, found, since, seen)
			}
		})
	}
	lower, upper := versionBounds(c.Key, c.End)
	it, err := s.newIter(lower, upper, rev)
	if err != nil {
		return false, err
	}
	holds, err := look.all(c, &engineCursor{it: it, rev: allOf(rev), walk: walk{account: account}})
	return holds && !look.over(), err
}

// holdsOne checks one key as of a change, past the cache. learn, unless it is nil, gets the version found if it is small.
func (s *Store) holdsOne(
	c *kv.Compare, at kv.Rev, needs kv.Revision, account kv.Account, left *int64,
	learn func(found *kv.KeyValue, since kv.Rev),
) (holds bool, err error) {
	if account != nil {
		if err := account.Walk(kv.WalkKeyBytes); err != nil {
			return false, err
		}
	}
	look := looks{left: left}
	err = s.seek(c.Key, at, needs, func(it engine.Iterator, since kv.Rev, size int) error {
		holds, err = look.at(c, it, since, size, learn)
		return err
	})
	return holds && !look.over(), err
}

// looks counts what comparisons read: kv.WalkKeyBytes for each key that exists, or was asked for by name, and the value if the
// comparison needs more than the revision of the last change. The count is the same for all members that compare at the same
// state.
type looks struct {
	left *int64 // nil: there is no bound
}

func (l *looks) take(bytes int) {
	if l.left != nil {
		*l.left -= int64(bytes)
	}
}

func (l *looks) over() bool { return l.left != nil && *l.left < 0 }

// one checks a key that is in memory.
func (l *looks) one(c *kv.Compare, found *kv.KeyValue) bool {
	l.take(kv.WalkKeyBytes)
	if found != nil && c.Target != kv.CompareMod {
		l.take(len(found.Value))
	}
	return holdsFor(c, found)
}

// at checks the row at which an iterator is, without a copy of its value; a small one is copied for learn. Its size is zero if
// there is none.
func (l *looks) at(
	c *kv.Compare, it engine.Iterator, since kv.Rev, size int, learn func(found *kv.KeyValue, since kv.Rev),
) (bool, error) {
	if learn != nil && size < takeAtOnce {
		var found *kv.KeyValue
		if size > 0 {
			var err error
			if found, err = versionAt(it, c.Key, since); err != nil {
				return false, err
			}
		}
		learn(found, since)
		return l.one(c, found), nil
	}
	l.take(kv.WalkKeyBytes)
	if size == 0 || size == tombstoneLen {
		return holdsFor(c, nil), nil
	}
	if c.Target == kv.CompareMod {
		return holdsForVersion(c, &kv.KeyValue{ModRevision: since.Main}), nil
	}
	rec, err := decodeRecord(it.Value(), since.Main)
	if readErr := it.Error(); readErr != nil {
		err = fmt.Errorf("mvcc: look up a key: %w", readErr)
	}
	if err != nil {
		return false, fmt.Errorf("%w: key %q at revision %d", err, c.Key, since.Main)
	}
	l.take(len(rec.value))
	return holdsForRecord(c, &rec, since.Main), nil
}

// all reports whether the condition holds for every key of the cursor, which it closes. A range without keys counts as one
// missing key.
func (l *looks) all(c *kv.Compare, keys cursor) (bool, error) {
	some, holds := false, true
	var failure error
	for holds && !l.over() && keys.next() {
		some = true
		l.take(kv.WalkKeyBytes)
		if c.Target == kv.CompareMod {
			holds = holdsForVersion(c, &kv.KeyValue{ModRevision: keys.mod()})
			continue
		}
		rec, mod, err := keys.version()
		if err != nil {
			failure = err
			break
		}
		l.take(len(rec.value))
		holds = holdsForRecord(c, &rec, mod)
	}
	if err := keys.close(); failure == nil {
		failure = err
	}
	if failure != nil {
		return false, failure
	}
	if !some {
		return holdsFor(c, nil), nil
	}
	return holds, nil
}

// holdsFor checks one key. A missing one has zeros for numbers, and no value: no condition on its value holds.
func holdsFor(c *kv.Compare, found *kv.KeyValue) bool {
	if found == nil {
		return c.Target != kv.CompareValue && holdsForVersion(c, &kv.KeyValue{})
	}
	return holdsForVersion(c, found)
}

func holdsForRecord(c *kv.Compare, rec *record, mod kv.Revision) bool {
	return holdsForVersion(c, &kv.KeyValue{
		CreateRevision: rec.create, ModRevision: mod, Version: rec.version, Lease: rec.lease, Value: rec.value,
	})
}

func holdsForVersion(c *kv.Compare, found *kv.KeyValue) bool {
	order := 0
	switch c.Target {
	case kv.CompareVersion:
		order = cmp.Compare(found.Version, c.Number)
	case kv.CompareCreate:
		order = cmp.Compare(int64(found.CreateRevision), c.Number)
	case kv.CompareMod:
		order = cmp.Compare(int64(found.ModRevision), c.Number)
	case kv.CompareValue:
		order = bytes.Compare(found.Value, c.Value)
	case kv.CompareLease:
		order = cmp.Compare(int64(found.Lease), c.Number)
	}
	switch c.Result {
	case kv.CompareEqual:
		return order == 0
	case kv.CompareNotEqual:
		return order != 0
	case kv.CompareGreater:
		return order > 0
	case kv.CompareLess:
		return order < 0
	}
	return true
}
