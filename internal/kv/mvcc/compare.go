package mvcc

import (
	"bytes"
	"cmp"

	"github.com/quorate/quorate/internal/kv"
)

// CheckAt tells whether the condition holds at a published revision; zero is now.
func (s *Store) CheckAt(c *kv.Compare, rev kv.Revision) (holds bool, err error) {
	_, err = s.atRevision(rev, func(rev kv.Revision) error {
		holds, err = s.holdsAt(c, rev)
		return err
	})
	return holds, err
}

func (s *Store) holdsAt(c *kv.Compare, rev kv.Revision) (bool, error) {
	if isSingle(c.End) {
		found, _, err := s.getAt(c.Key, rev, nil)
		return err == nil && holdsFor(c, found), err
	}
	if isEmptyRange(c.Key, c.End) {
		return holdsFor(c, nil), nil
	}
	lower, upper := versionBounds(c.Key, c.End)
	it, err := s.newIter(lower, upper, rev)
	if err != nil {
		return false, err
	}
	return holdsForAll(c, &engineCursor{it: it, rev: allOf(rev)})
}

// holdsForAll tells whether the condition holds for every key of the cursor, which it closes. A range without keys
// counts as one missing key.
func holdsForAll(c *kv.Compare, keys cursor) (bool, error) {
	some, holds := false, true
	var failure error
	for holds && keys.next() {
		some = true
		rec, mod, err := keys.version()
		if err != nil {
			failure = err
			break
		}
		holds = holdsForVersion(c, &kv.KeyValue{
			CreateRevision: rec.create, ModRevision: mod, Version: rec.version, Lease: rec.lease, Value: rec.value,
		})
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

// holdsFor judges one key. A missing one has zeros for numbers, and no value: no condition on its value holds.
func holdsFor(c *kv.Compare, found *kv.KeyValue) bool {
	if found == nil {
		return c.Target != kv.CompareValue && holdsForVersion(c, &kv.KeyValue{})
	}
	return holdsForVersion(c, found)
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
