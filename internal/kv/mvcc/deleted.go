package mvcc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// deletedOverhead is the memory of a DeletedKey beside its key.
const deletedOverhead = 256

// firstRows are looked at in any case. A range of no more keys than this is done then, at a smaller cost than by looking at the
// changes of the history.
const firstRows = 2048

// Deleted returns keys of a range that are gone. It walks over all keys of the range, or, where more than some thousands of
// them are left and the history has few changes, over those of its changes. The error is kv.ErrCompacted or
// kv.ErrFutureRevision for At, account's, or an operating error.
func (s *Store) Deleted(q *DeletedQuery, account kv.Account) (page DeletedPage, err error) {
	var refused error // of At: atRevision would try again
	current, err := s.atRevision(0, func(rev kv.Revision) (err error) {
		refused, err = s.deletedAt(q, rev, account, &page)
		return err
	})
	page.Revision = current
	return page, cmp.Or(refused, err)
}

func (s *Store) deletedAt(q *DeletedQuery, rev kv.Revision, account kv.Account, page *DeletedPage) (refused, err error) {
	lower, upper := versionBounds(q.Key, q.End)
	if bytes.Compare(q.From, q.Key) > 0 {
		lower = appendPrefix(nil, q.From)
	}
	var it engine.Iterator // nil: the range is empty
	if !isEmptyRange(q.Key, q.End) && bytes.Compare(lower, upper) < 0 {
		if it, err = s.newIter(lower, upper, rev); err != nil {
			return nil, err
		}
	}
	w := &deletedWalk{store: s, it: it, q: q, rev: rev, floor: s.CompactRevision(), page: page, account: account,
		walk: walk{account: account}}
	*page = DeletedPage{History: History{First: max(w.floor, 1)}}
	_, refused = checkRevision(q.At, rev, w.floor)
	if it == nil {
		return refused, nil
	}
	if refused == nil && q.Authors {
		w.authors, err = s.lookAuthors(&w.walk)
	}
	if refused == nil && err == nil {
		err = w.run()
	}
	if closeErr := errors.Join(it.Close(), w.authors.close()); err == nil && closeErr != nil {
		err = fmt.Errorf("mvcc: close an iterator: %w", closeErr)
	}
	return refused, err
}

// deletedWalk walks over the rows of a range.
type deletedWalk struct {
	store   *Store
	it      engine.Iterator
	q       *DeletedQuery
	rev     kv.Revision // the last visible one
	floor   kv.Revision // the compact revision
	page    *DeletedPage
	account kv.Account
	walk    walk

	valid  bool   // the iterator is at a row
	prefix []byte // of the key that is looked at
	at     kv.Rev // of the row at which the iterator is, if it is of that key
	seek   []byte
	looked int    // rows
	read   int    // bytes
	value  []byte // that the key had

	authors *authorLookup // nil: they are not asked for
	gone    kv.Rev        // of the deletion of the key that is looked at
}

func (w *deletedWalk) run() error {
	w.valid = w.it.First()
	done, err := w.walkRows(min(firstRows, w.q.Rows))
	if !done && err == nil {
		done, err = w.walkChanges()
	}
	if !done && err == nil {
		_, err = w.walkRows(w.q.Rows)
	}
	w.page.Looked += w.looked
	return err
}

// walkRows looks at keys one after another until the page is full, the range is done, or so many rows were looked at. It
// returns false in the last case. Next of the page is where it stopped.
func (w *deletedWalk) walkRows(most int) (done bool, err error) {
	for w.valid {
		if err := w.enterKey(); err != nil {
			return false, err
		}
		full := w.isFull()
		if full || w.looked > most {
			w.page.Next, _ = appendUser(nil, w.prefix)
			return full, w.account.Take(len(w.page.Next))
		}
		if err := w.examine(); err != nil {
			return false, err
		}
		if w.valid && w.onKey() { // rows of this key are left
			w.valid = w.it.NextPrefix()
		}
	}
	w.page.Next = nil
	return true, w.iterErr()
}

// isFull reports whether nothing more may be added to the page.
func (w *deletedWalk) isFull() bool {
	return len(w.page.Keys) >= w.q.Limit || w.read >= w.q.Bytes
}

// enterKey begins with the key of the row at which the iterator is.
func (w *deletedWalk) enterKey() error {
	prefix, at, ok := splitVersionKey(w.it.Key())
	if !ok {
		return fmt.Errorf("%w: version key %x", ErrCorruptRow, w.it.Key())
	}
	w.prefix, w.at = append(w.prefix[:0], prefix...), at
	return w.stepped()
}

// stepped counts a row.
func (w *deletedWalk) stepped() error {
	w.looked++
	return w.walk.over(kv.WalkKeyBytes)
}

// onKey reports whether the iterator is at a row of the key that is looked at.
func (w *deletedWalk) onKey() bool {
	key := w.it.Key()
	return len(key) == len(w.prefix)+suffixLen && bytes.HasPrefix(key, w.prefix)
}

// arrived notes to which row the iterator has moved; false: to none of the key that is looked at.
func (w *deletedWalk) arrived(valid bool) (bool, error) {
	if w.valid = valid; !valid {
		return false, w.iterErr()
	}
	if !w.onKey() {
		return false, nil
	}
	_, w.at, _ = splitVersionKey(w.it.Key())
	return true, w.stepped()
}

// toOlder moves to the next older row of the key.
func (w *deletedWalk) toOlder() (bool, error) { return w.arrived(w.it.Next()) }

// asOf moves from a row of the key to its newest row at an earlier revision.
func (w *deletedWalk) asOf(rev kv.Revision) (bool, error) {
	if w.at.Main <= rev {
		return true, nil
	}
	if found, err := w.toOlder(); !found || err != nil || w.at.Main <= rev { // mostly it is the next one
		return found, err
	}
	return w.seekTo(rev)
}

// seekTo is asOf from any row.
func (w *deletedWalk) seekTo(rev kv.Revision) (bool, error) {
	w.seek = appendRev(append(w.seek[:0], w.prefix...), allOf(rev))
	return w.arrived(w.it.SeekGE(w.seek))
}

func (w *deletedWalk) iterErr() error {
	if err := w.it.Error(); err != nil {
		return fmt.Errorf("mvcc: look for deleted keys: %w", err)
	}
	return nil
}

// isDeletion reports whether the row at which the iterator is deletes the key.
func (w *deletedWalk) isDeletion() bool { return w.it.ValueLen() == tombstoneLen }

// readVersion reads the row at which the iterator is, without its value, which stays valid until the iterator moves.
func (w *deletedWalk) readVersion() (v Version, value []byte, err error) {
	size := w.it.ValueLen()
	w.read += size
	if err := w.walk.over(size); err != nil {
		return v, nil, err
	}
	rec, err := recordAt(w.it, w.at)
	if err != nil {
		return v, nil, fmt.Errorf("%w: version key %x", err, w.it.Key())
	}
	return Version{Size: len(rec.value), KeyValue: kv.KeyValue{ModRevision: w.at.Main, CreateRevision: rec.create,
		Version: rec.version, Lease: rec.lease}}, rec.value, nil
}

// examine adds the key that was entered to the page if it belongs there. The iterator is at its newest row, which may be too
// new to be seen.
func (w *deletedWalk) examine() error {
	found, err := w.asOf(w.rev)
	if !found || err != nil {
		return err
	}
	gone := w.isDeletion()
	if !gone && !w.q.Existing {
		return nil
	}
	var one DeletedKey
	if gone {
		one.Deleted, w.gone = w.at.Main, w.at
	}
	if w.q.At > 0 {
		found, err = w.moveSince(&one)
	} else {
		found, err = w.moveKept(&one)
	}
	if !found || err != nil {
		return err
	}
	was, value, err := w.readVersion()
	if one.Was = was; err == nil && !gone {
		err = w.compareNow(&one, value)
	}
	if err == nil {
		err = w.account.Take(deletedOverhead + len(w.prefix))
	}
	if err == nil {
		err = w.blame(&one)
	}
	if err != nil {
		return err
	}
	one.Key, _ = appendUser(nil, w.prefix)
	w.read += len(one.Key)
	w.page.Keys = append(w.page.Keys, one)
	return nil
}

// blame finds who deleted the key, if that is asked for.
func (w *deletedWalk) blame(one *DeletedKey) (err error) {
	if w.authors == nil || one.Deleted == 0 {
		return nil
	}
	if err = w.account.Take(authorOverhead); err == nil {
		one.By, err = w.authors.of(w.gone)
	}
	return err
}

// moveSince moves to the row that was current at DeletedQuery.At, if the key was written or deleted after it.
func (w *deletedWalk) moveSince(one *DeletedKey) (found bool, err error) {
	if one.Read = w.q.At; w.at.Main <= one.Read {
		return false, nil
	}
	if found, err = w.asOf(one.Read); !found || err != nil {
		return false, err
	}
	return !w.isDeletion(), nil
}

// moveKept moves to the value that the last deletion took, if it can be read. Deletions at the compact revision, and before it,
// took nothing that can.
func (w *deletedWalk) moveKept(one *DeletedKey) (found bool, err error) {
	if one.Deleted == 0 {
		if found, err = w.lastDeletion(); !found || err != nil {
			return false, err
		}
		one.Deleted, w.gone = w.at.Main, w.at
	}
	for one.Deleted > w.floor {
		if found, err = w.asOf(one.Deleted - 1); !found || err != nil {
			return false, err
		}
		if !w.isDeletion() {
			one.Read = one.Deleted - 1
			return true, nil
		}
		one.Deleted, w.gone = w.at.Main, w.at // the revision of the later one wrote and deleted the key
	}
	return false, nil
}

// fewVersions are stepped over, which reads no values. Of a key with more, one is read, to find its creation.
const fewVersions = 16

// lastDeletion moves from the newest row of a key that exists to its last deletion after the compact revision.
func (w *deletedWalk) lastDeletion() (found bool, err error) {
	for {
		newest := w.at.Main
		last := newest
		for range fewVersions {
			if found, err = w.toOlder(); !found || err != nil || w.at.Main <= w.floor {
				return false, err
			}
			if w.at.Main == last { // an earlier change of a revision that was seen
				continue
			}
			if last = w.at.Main; w.isDeletion() {
				return true, nil
			}
		}
		if found, err = w.seekTo(newest); !found || err != nil {
			return false, err
		}
		version, _, err := w.readVersion()
		if err != nil || version.CreateRevision-1 <= w.floor {
			return false, err
		}
		if found, err = w.asOf(version.CreateRevision - 1); !found || err != nil || w.at.Main <= w.floor {
			return false, err
		}
		if w.isDeletion() {
			return true, nil
		} // else it was deleted and written in one revision
	}
}

// compareNow reads the key as it exists now, and compares its value with one that was read before.
func (w *deletedWalk) compareNow(one *DeletedKey, was []byte) error {
	w.value = append(w.value[:0], was...)
	if found, err := w.seekTo(w.rev); !found || err != nil {
		return err
	}
	now, value, err := w.readVersion()
	one.Now, one.Same = now, bytes.Equal(value, w.value)
	return err
}

// walkChanges looks at the keys that the history has changes of, from Next of the page on. It returns false, and leaves the
// page as it was, if the history has too many changes.
func (w *deletedWalk) walkChanges() (done bool, err error) {
	since := max(w.floor, 0)
	if w.q.At > 0 {
		since = w.q.At
	}
	if w.rev-since > kv.Revision(w.q.Changes) {
		return false, nil
	}
	c := changedKeys{store: w.store, q: w.q, from: w.page.Next, rev: w.rev, account: w.account, walk: walk{account: w.account}}
	whole, err := c.collect(kv.Rev{Main: since + 1})
	if w.page.Looked += c.looked; !whole || err != nil {
		return false, err
	}
	for _, user := range c.inOrder() {
		if w.isFull() || w.looked > w.q.Rows {
			w.page.Next = []byte(user)
			return true, nil
		}
		w.prefix = appendPrefix(w.prefix[:0], []byte(user))
		found, err := w.seekTo(w.rev)
		if found {
			err = w.examine()
		}
		if err != nil {
			return false, err
		}
	}
	w.page.Next = c.cut
	return true, nil
}
