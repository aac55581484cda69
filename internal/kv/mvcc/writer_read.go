package mvcc

import (
	"fmt"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Get returns the key as this Writer sees it, nil if it does not exist.
func (w *Writer) Get(key []byte) *kv.KeyValue {
	found, _ := w.current(key, true)
	return found
}

// Range reads as this Writer sees the store. op.Revision may be a revision of this Writer, too. An error of account ends the
// read and is no error of the Writer; a nil account counts nothing.
func (w *Writer) Range(op *kv.RangeOp, account kv.Account) (kv.RangeResult, error) {
	rev, err := checkRevision(op.Revision, w.Revision(), w.compact)
	if err != nil || isEmptyRange(op.Key, op.End) {
		return kv.RangeResult{}, err
	}
	if account == nil {
		result, err := w.rangeAt(op, rev, nil)
		w.note(err)
		return result, err
	}
	asked := &asked{Account: account}
	result, err := w.rangeAt(op, rev, asked)
	if !asked.refused {
		w.note(err)
	}
	return result, err
}

func (w *Writer) rangeAt(op *kv.RangeOp, rev kv.Revision, account kv.Account) (kv.RangeResult, error) {
	if isSingle(op.End) {
		return rangeOfOne(op, account, func(account kv.Account, bare bool) (*kv.KeyValue, bool, error) {
			return w.at(op.Key, rev, account, bare)
		})
	}
	want := newCollector(op, true, account)
	if isWhole(op) && rev == w.Revision() {
		want.total, want.totalKnown = w.numbers.keys, true
	}
	if op.CountOnly {
		if !want.totalKnown {
			var err error
			if want.total, err = w.countAt(op.Key, op.End, rev, account); err != nil {
				return kv.RangeResult{}, err
			}
		}
		return kv.RangeResult{Count: want.total}, nil
	}
	want.behind = func(key []byte) (int64, bool, error) {
		count, walk, err := w.store.countBehind(key, op.End, min(rev, w.base.revision), account)
		if walk || err != nil {
			return 0, walk, err
		}
		return count + w.pendingCount(key, op.End, rev), false, nil
	}
	return want.run(w.cursor(op.Key, op.End, rev, account))
}

// CheckRevision reports whether a transaction may read at this revision, without reading.
func (w *Writer) CheckRevision(rev kv.Revision) error {
	return checkTxnRevision(rev, w.Revision(), w.compact)
}

// Check reports whether the condition holds now. Its looks are subtracted from left, whatever the cache has; when left is used
// up it ends, and returns false.
func (w *Writer) Check(c *kv.Compare, left *int64) bool {
	look := looks{left: left}
	if isEmptyRange(c.Key, c.End) {
		return holdsFor(c, nil)
	}
	var holds bool
	var err error
	if !isSingle(c.End) {
		holds, err = look.all(c, w.cursor(c.Key, c.End, w.Revision(), nil))
	} else if found, _, ok := w.cached(c.Key); ok {
		holds = look.one(c, found)
	} else {
		holds, err = w.checkRow(c, &look)
	}
	w.note(err)
	return holds && !look.over()
}

// checkRow checks one key that is neither among this Writer's changes nor in the cache.
func (w *Writer) checkRow(c *kv.Compare, look *looks) (bool, error) {
	it := w.iterator()
	if it == nil {
		return false, nil
	}
	since, size, err := seekVersion(it, &w.keyBuf, c.Key, allOf(w.base.revision))
	if err != nil {
		return false, err
	}
	return look.at(c, it, since, size, func(found *kv.KeyValue, since kv.Rev) {
		w.store.learn(c.Key, found, since, w.base.revision)
	})
}

// current returns the newest version of key and the change that wrote it. The cache's entries are all valid at w.base: only
// this Writer could outdate them, and it looks at its own versions first. learn puts the engine's version into the cache; a
// caller that is about to write the key need not.
func (w *Writer) current(key []byte, learn bool) (*kv.KeyValue, kv.Rev) {
	if found, since, ok := w.cached(key); ok {
		return found, since
	}
	found, since := w.fromEngine(key, w.base.revision)
	if learn && w.err == nil {
		w.store.learn(key, found, since, w.base.revision)
	}
	return found, since
}

// cached is current for a key that this Writer has changed, or that the cache has; false for others.
func (w *Writer) cached(key []byte) (found *kv.KeyValue, since kv.Rev, ok bool) {
	if v, found := w.pending.newest(key); found {
		return v.live(), v.rev, true
	}
	return w.store.cache.get(key, w.base.revision)
}

// at returns key at a revision that may be this Writer's own, without its value if it is bare. Otherwise a large pair is taken
// from account before it is read; taken reports that it was.
func (w *Writer) at(
	key []byte, rev kv.Revision, account kv.Account, bare bool,
) (found *kv.KeyValue, taken bool, err error) {
	v, changed := w.pending.newest(key)
	if changed && rev < w.Revision() {
		v = w.pending.at(key, rev)
	}
	if v != nil {
		return v.live(), false, nil
	}
	rev = min(rev, w.base.revision)
	if found, _, ok := w.store.cache.get(key, rev); ok {
		return found, false, nil
	}
	it := w.iterator()
	if it == nil {
		return nil, false, w.err
	}
	since, size, err := seekVersion(it, &w.keyBuf, key, allOf(rev))
	if err == nil && bare && size >= takeAtOnce {
		found, err = bareAt(it, key, since)
		return found, false, err
	}
	if err == nil && account != nil && size >= takeAtOnce {
		if err := account.Take(len(key) + size + pairOverhead); err != nil {
			return nil, false, err
		}
		taken = true
	}
	if err == nil && size > 0 {
		found, err = versionAt(it, key, since)
	}
	if err == nil && rev == w.base.revision {
		w.store.learn(key, found, since, rev)
	}
	return found, taken, err
}

func (w *Writer) fromEngine(key []byte, rev kv.Revision) (*kv.KeyValue, kv.Rev) {
	row, since := w.rowFromEngine(key, rev)
	if row == nil {
		return nil, since
	}
	found, err := loadVersion(key, row, since.Main)
	w.note(err)
	return found, since
}

// rowFromEngine returns the row of a key, valid until the next call, and the change that made it; nil if there is none.
func (w *Writer) rowFromEngine(key []byte, rev kv.Revision) ([]byte, kv.Rev) {
	it := w.iterator()
	if it == nil {
		return nil, kv.Rev{}
	}
	row, since, err := lookupRow(it, &w.keyBuf, key, allOf(rev))
	w.note(err)
	return row, since
}

// iterator is the iterator for single keys; nil after an error, which is noted.
func (w *Writer) iterator() engine.Iterator {
	if w.it == nil {
		it, err := w.store.engine.NewIter(nil, nil)
		if err != nil {
			w.note(fmt.Errorf("mvcc: iterate at revision %d: %w", w.base.revision, err))
			return nil
		}
		w.it = it
	}
	return w.it
}

// cursor reads a range as it is at rev, with this Writer's versions. An error of the engine shows at its close.
func (w *Writer) cursor(key, end []byte, rev kv.Revision, account kv.Account) cursor {
	return w.cursorOver(key, end, rev, account, false)
}

// cursorOver is cursor that, if deleted is set, stops at keys that were deleted, too, as long as their tombstones are there.
func (w *Writer) cursorOver(key, end []byte, rev kv.Revision, account kv.Account, deleted bool) cursor {
	lower, upper := versionBounds(key, end)
	it, err := w.store.engine.NewIter(lower, upper)
	if err != nil {
		return failedCursor{fmt.Errorf("mvcc: iterate at revision %d: %w", rev, err)}
	}
	under := &engineCursor{it: it, rev: allOf(rev), deleted: deleted, walk: walk{account: account}}
	over := w.pending.within(key, end)
	if len(over) == 0 {
		return under
	}
	return &pendingCursor{under: under, over: over, rev: rev, deleted: deleted}
}

// failedCursor holds no keys and an error.
type failedCursor struct{ err error }

func (c failedCursor) next() bool                            { return false }
func (c failedCursor) key() []byte                           { return nil }
func (c failedCursor) mod() kv.Revision                      { return 0 }
func (c failedCursor) version() (record, kv.Revision, error) { return record{}, 0, c.err }
func (c failedCursor) close() error                          { return c.err }
