package mvcc

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/kv"
)

// Get returns the key as this Writer sees it, nil if it does not exist.
func (w *Writer) Get(key []byte) *kv.KeyValue {
	found, _ := w.current(key, true)
	return found
}

// Range reads as this Writer sees the store. op.Revision counts the revisions of this Writer, too. An error of account ends
// the read and is no error of the Writer; nil counts nothing.
func (w *Writer) Range(op *kv.RangeOp, account kv.Account) (kv.RangeResult, error) {
	rev, err := checkRevision(op.Revision, w.Revision(), w.compact)
	if err != nil {
		return kv.RangeResult{}, err
	}
	if isEmptyRange(op.Key, op.End) {
		return kv.RangeResult{}, nil
	}
	if isSingle(op.End) {
		found := w.at(op.Key, rev)
		if found == nil {
			return kv.RangeResult{}, w.err
		}
		return rangeOfOne(op, found, account)
	}
	want := newCollector(op, true, account)
	if isWhole(op) && rev == w.Revision() {
		want.total, want.totalKnown = w.numbers.keys, true
	}
	if op.CountOnly {
		if !want.totalKnown {
			want.total, err = w.countAt(op.Key, op.End, rev)
			w.note(err)
		}
		return kv.RangeResult{Count: want.total}, err
	}
	want.behind = func(key []byte) (int64, bool, error) {
		count, walk, err := w.store.countBehind(key, op.End, min(rev, w.base.revision))
		if walk || err != nil {
			return 0, walk, err
		}
		return count + w.pendingCount(key, op.End, rev), false, nil
	}
	result, err := want.run(w.cursor(op.Key, op.End, rev))
	if !isAccountError(err) {
		w.note(err)
	}
	return result, err
}

// isAccountError tells whether an error is an account's and not the engine's.
func isAccountError(err error) bool {
	return errors.Is(err, kv.ErrAnswerTooLarge) || errors.Is(err, kv.ErrAnswersBusy)
}

// CheckRevision tells whether a transaction may read at this revision, without reading.
func (w *Writer) CheckRevision(rev kv.Revision) error {
	return checkTxnRevision(rev, w.Revision(), w.compact)
}

// Check tells whether the condition holds now.
func (w *Writer) Check(c *kv.Compare) bool {
	if isSingle(c.End) {
		return holdsFor(c, w.Get(c.Key))
	}
	if isEmptyRange(c.Key, c.End) {
		return holdsFor(c, nil)
	}
	holds, err := holdsForAll(c, w.cursor(c.Key, c.End, w.Revision()))
	w.note(err)
	return holds
}

// current returns the newest version of key and the change that wrote it. The cache's entries are all true at w.base: only
// this Writer could outdate them, and it looks at its own versions first. learn puts what the engine said into the cache; a
// caller that is about to write the key need not.
func (w *Writer) current(key []byte, learn bool) (*kv.KeyValue, kv.Rev) {
	if found, since, ok := w.cached(key); ok {
		return found, since
	}
	found, since := w.fromEngine(key, w.base.revision)
	if learn && w.err == nil {
		if since == (kv.Rev{}) {
			since.Main = w.base.revision
		}
		w.store.cache.learn(key, found, since, w.base.revision)
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

// at returns key at a revision that may be this Writer's own.
func (w *Writer) at(key []byte, rev kv.Revision) *kv.KeyValue {
	if rev >= w.Revision() {
		return w.Get(key)
	}
	if v := w.pending.at(key, rev); v != nil {
		return v.live()
	}
	if found, _, ok := w.store.cache.get(key, rev); ok {
		return found
	}
	found, _ := w.fromEngine(key, min(rev, w.base.revision))
	return found
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
	if w.it == nil {
		it, err := w.store.engine.NewIter(nil, nil)
		if err != nil {
			w.note(fmt.Errorf("mvcc: iterate at revision %d: %w", rev, err))
			return nil, kv.Rev{}
		}
		w.it = it
	}
	row, since, err := lookupRow(w.it, &w.keyBuf, key, allOf(rev))
	w.note(err)
	return row, since
}

// cursor walks over a range as it is at rev, with this Writer's versions. An error of the engine shows at its close.
func (w *Writer) cursor(key, end []byte, rev kv.Revision) cursor {
	lower, upper := versionBounds(key, end)
	it, err := w.store.engine.NewIter(lower, upper)
	if err != nil {
		return failedCursor{fmt.Errorf("mvcc: iterate at revision %d: %w", rev, err)}
	}
	under := &engineCursor{it: it, rev: allOf(rev)}
	over := w.pending.within(key, end)
	if len(over) == 0 {
		return under
	}
	return &pendingCursor{under: under, over: over, rev: rev}
}

// failedCursor holds no keys and an error.
type failedCursor struct{ err error }

func (c failedCursor) next() bool                            { return false }
func (c failedCursor) key() []byte                           { return nil }
func (c failedCursor) version() (record, kv.Revision, error) { return record{}, 0, c.err }
func (c failedCursor) close() error                          { return c.err }
