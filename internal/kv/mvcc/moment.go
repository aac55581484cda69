package mvcc

import "github.com/quorate/quorate/internal/kv"

// Moment is the store as it was between two changes of one command, for code that must see again what an operation of a
// transaction saw. It needs the history from the revision before that command on.
type Moment struct {
	store *Store
	last  kv.Rev      // the last visible change
	needs kv.Revision // the moment is gone once compacted beyond this
}

// After is the moment after all changes of a published revision.
func (s *Store) After(rev kv.Revision) Moment { return Moment{store: s, last: allOf(rev), needs: rev} }

// Within is the moment after the first changes of the command of a published revision: before its first, if there are
// none.
func (s *Store) Within(rev kv.Revision, changes int64) Moment {
	m := Moment{store: s, last: kv.Rev{Main: rev, Sub: changes - 1}, needs: rev - 1}
	if changes == 0 {
		m.last = allOf(rev - 1)
	}
	return m
}

// Range reads the moment, whatever revision op asks for. It returns kv.ErrCompacted if the moment is gone.
func (m Moment) Range(op *kv.RangeOp, account kv.Account) (kv.RangeResult, error) {
	if isEmptyRange(op.Key, op.End) {
		return kv.RangeResult{}, nil
	}
	if isSingle(op.End) {
		return rangeOfOne(op, account, func(account kv.Account, bare bool) (*kv.KeyValue, bool, error) {
			if bare {
				found, err := m.store.loadBare(op.Key, m.last, m.needs)
				return found, false, err
			}
			found, _, taken, err := m.store.load(op.Key, m.last, m.needs, account)
			return found, taken, err
		})
	}
	if op.CountOnly {
		count, err := m.countAt(op.Key, op.End, account)
		return kv.RangeResult{Count: count}, err
	}
	keys, err := m.cursor(op.Key, op.End, account)
	if err != nil {
		return kv.RangeResult{}, err
	}
	want := newCollector(op, true, account)
	want.behind = func(key []byte) (int64, bool, error) {
		count, err := m.countAt(key, op.End, account)
		return count, false, err
	}
	return want.run(keys)
}

// Check reports whether the condition held. It returns kv.ErrCompacted if the moment is gone. An error of account ends it.
func (m Moment) Check(c *kv.Compare, account kv.Account) (bool, error) {
	if isEmptyRange(c.Key, c.End) {
		return holdsFor(c, nil), nil
	}
	if isSingle(c.End) {
		return m.store.holdsOne(c, m.last, m.needs, account, nil, nil)
	}
	keys, err := m.cursor(c.Key, c.End, account)
	if err != nil {
		return false, err
	}
	return new(looks).all(c, keys)
}

func (m Moment) cursor(key, end []byte, account kv.Account) (cursor, error) {
	lower, upper := versionBounds(key, end)
	it, err := m.store.newIter(lower, upper, m.needs)
	if err != nil {
		return nil, err
	}
	return &engineCursor{it: it, rev: m.last, walk: walk{account: account}}, nil
}
