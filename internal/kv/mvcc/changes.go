package mvcc

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// ChangeQuery asks for changes of the keys of a range, the newest first, as far as the history is kept.
type ChangeQuery struct {
	Key, End []byte // by etcd's rules for a range's end
	Before   kv.Rev // only changes before it; zero: all
	Authors  bool   // with authors
	Limit    int    // changes in the answer, at least 1
	Bytes    int    // of keys in the answer; the first change may exceed it
	Changes  int    // to look at, at least 1; a row of them is looked at as a whole
}

// KeyChange is what one command of a revision did to a key.
type KeyChange struct {
	Key              []byte
	At               kv.Rev
	Created, Deleted bool       // neither: it was changed
	By               *kv.Author // nil: it was not asked for, or is not known
}

// ChangePage is a part of an answer, the newest change first.
type ChangePage struct {
	Changes []KeyChange
	Next    kv.Rev // ask for those before it; zero: no earlier one is kept
	Looked  int    // changes
	History
}

// changeOverhead is the memory of a KeyChange beside its key.
const changeOverhead = 96

// Changes returns changes of the keys of a range. It walks over those of all keys: a page may be empty, and go on. The error is
// account's, or an operating error.
func (s *Store) Changes(q *ChangeQuery, account kv.Account) (page ChangePage, err error) {
	current, err := s.atRevision(0, func(rev kv.Revision) error {
		rows, err := s.newIter(tableOfChanges[:1], tableOfChanges[1:], rev)
		if err != nil {
			return err
		}
		// The rows have all changes behind the compact revision of this moment: they are deleted after it has risen.
		w := &changeWalk{rows: rows, q: q, floor: max(s.CompactRevision(), 0), page: &page, account: account,
			walk: walk{account: account}}
		page = ChangePage{History: History{First: max(w.floor, 1)}}
		w.before = kv.Rev{Main: rev + 1}
		if q.Before != (kv.Rev{}) && later(w.before, q.Before) {
			w.before = q.Before
		}
		err = w.run()
		if closeErr := rows.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("mvcc: close an iterator: %w", closeErr)
		}
		return err
	})
	page.Revision = current
	return page, err
}

// tableOfChanges are the bounds of the rows of changes, a byte each.
var tableOfChanges = []byte{tableChanges, tableChanges + 1}

// changeWalk walks over changes from the newest to the oldest, a row of them at a time.
type changeWalk struct {
	rows    engine.Iterator
	q       *ChangeQuery
	before  kv.Rev
	floor   kv.Revision // changes up to it are not told
	page    *ChangePage
	account kv.Account
	walk    walk

	found []KeyChange // of one row, the oldest first; keys alias the row
	size  int         // bytes of keys in the page
}

func (w *changeWalk) run() error {
	valid := w.rows.SeekGE(appendChangeKey(nil, kv.Rev{Main: w.before.Main, Sub: min(max(w.before.Sub, 0), maxSub)}))
	if !valid && w.rows.Error() == nil {
		valid = w.rows.Last()
	}
	for ; valid; valid = w.rows.Prev() {
		first, err := w.read()
		if err != nil {
			return err
		}
		for i := range slices.Backward(w.found) {
			full := len(w.page.Changes) >= w.q.Limit || w.size+len(w.found[i].Key) > w.q.Bytes
			if full && len(w.page.Changes) > 0 {
				w.page.Next = w.page.Changes[len(w.page.Changes)-1].At
				return nil
			}
			if err := w.add(w.found[i]); err != nil {
				return err
			}
		}
		switch {
		case first.Main <= w.floor+1 && first.Sub == 0:
			return nil // no earlier change is kept
		case w.page.Looked >= w.q.Changes && later(w.before, first): // else this row was looked at before
			w.page.Next = first
			return nil
		}
	}
	if err := w.rows.Error(); err != nil {
		return fmt.Errorf("mvcc: look for changes: %w", err)
	}
	return nil
}

// read reads the row at which the iterator is, and returns the position of its first change, or of the last one that is before
// all changes that are wanted.
func (w *changeWalk) read() (first kv.Rev, err error) {
	row := w.rows.Value()
	if err := w.rows.Error(); err != nil {
		return first, fmt.Errorf("mvcc: look for changes: %w", err)
	}
	if err := w.walk.over(len(row)); err != nil {
		return first, err
	}
	last, ok := decodeChangeKey(w.rows.Key())
	if !ok {
		return first, fmt.Errorf("%w: change key %x", ErrCorruptRow, w.rows.Key())
	}
	w.found = w.found[:0]
	pack, ok := openPack(row, last)
	for begun := false; ok && !pack.exhausted(); begun = true {
		var c change
		if c, ok = pack.next(); !ok {
			break
		}
		if !begun {
			first = pack.at
		}
		w.page.Looked++
		if pack.at.Main > w.floor && later(w.before, pack.at) && inRange(c.user, w.q.Key, w.q.End) {
			one := KeyChange{Key: c.user, At: pack.at, Created: c.kind == changeCreate, Deleted: c.kind == changeDelete}
			if w.q.Authors && len(c.by) > 0 {
				by := decodeAuthor(c.by)
				one.By = &by
			}
			w.found = append(w.found, one)
		}
	}
	if !ok {
		return first, fmt.Errorf("%w: changes up to revision %d", ErrCorruptRow, last.Main)
	}
	return first, nil
}

func (w *changeWalk) add(one KeyChange) error {
	taken := changeOverhead + len(one.Key)
	if w.q.Authors {
		taken += authorOverhead
	}
	if err := w.account.Take(taken); err != nil {
		return err
	}
	one.Key = bytes.Clone(one.Key)
	w.size += len(one.Key)
	w.page.Changes = append(w.page.Changes, one)
	return nil
}
