package mvcc

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/census"
)

// countAt returns the number of keys of a range at rev, which is published.
func (s *Store) countAt(key, end []byte, rev kv.Revision, account kv.Account) (int64, error) {
	count, parts := s.census.Count(key, end, rev)
	for i := range parts {
		walked, err := s.walkCount(&parts[i], rev, account)
		if err != nil {
			return 0, err
		}
		count += walked
	}
	return count, nil
}

// countBehind is countAt for a walk that has come to key. walk is true if the walk should continue: a count would read the same
// keys.
func (s *Store) countBehind(
	key, end []byte, rev kv.Revision, account kv.Account,
) (count int64, walk bool, err error) {
	count, parts := s.census.Count(key, end, rev)
	if count == 0 && len(parts) == 1 && bytes.Equal(parts[0].Key, key) && bytes.Equal(parts[0].End, end) {
		return 0, true, nil
	}
	for i := range parts {
		walked, err := s.walkCount(&parts[i], rev, account)
		if err != nil {
			return 0, false, err
		}
		count += walked
	}
	return count, false, nil
}

// walkCount counts a span that the census does not know.
func (s *Store) walkCount(part *census.Span, rev kv.Revision, account kv.Account) (count int64, err error) {
	lower, upper := versionBounds(part.Key, part.End)
	it, err := s.newIter(lower, upper, rev)
	if err != nil {
		return 0, err
	}
	c := engineCursor{it: it, rev: allOf(rev), walk: walk{account: account}}
	for c.next() {
		count++
	}
	return count, c.close()
}

// VisitKeys calls visit with each key of a range at the published revision, in order, and with the length of its version's
// record, until it returns false. The key is valid during the call. The error is account's, or an operating error.
func (s *Store) VisitKeys(key, end []byte, account kv.Account, visit func(key []byte, size int) bool) error {
	if isEmptyRange(key, end) {
		return nil
	}
	lower, upper := versionBounds(key, end)
	_, err := s.atRevision(0, func(rev kv.Revision) error {
		it, err := s.newIter(lower, upper, rev)
		if err != nil {
			return err
		}
		c := engineCursor{it: it, rev: allOf(rev), walk: walk{account: account}}
		for c.next() && visit(c.key(), c.it.ValueLen()) {
		}
		return c.close()
	})
	return err
}

// countAt returns the number of keys of a range at rev, as this Writer sees it.
func (w *Writer) countAt(key, end []byte, rev kv.Revision, account kv.Account) (int64, error) {
	count, err := w.store.countAt(key, end, min(rev, w.base.revision), account)
	return count + w.pendingCount(key, end, rev), err
}

// pendingCount returns how many more keys a range has at rev than in the engine.
func (w *Writer) pendingCount(key, end []byte, rev kv.Revision) (more int64) {
	if len(w.lives) == 0 || rev <= w.base.revision {
		return 0
	}
	for _, k := range w.pending.within(key, end) {
		before, now := k.existed(), k.existed()
		if v := k.at(rev); v != nil {
			now = !v.tombstone
		}
		if now != before {
			if now {
				more++
			} else {
				more--
			}
		}
	}
	return more
}

// existed reports whether the key existed before its first change here.
func (k *pendingKey) existed() bool {
	v := k.newest
	for v.older != nil {
		v = v.older
	}
	return v.tombstone || v.kv.Version > 1
}

// countAt returns the number of keys of a range at the moment.
func (m Moment) countAt(key, end []byte, account kv.Account) (int64, error) {
	if m.last == allOf(m.last.Main) {
		return m.store.countAt(key, end, m.last.Main, account)
	}
	count, err := m.store.countAt(key, end, m.last.Main-1, account)
	if err != nil {
		return 0, err
	}
	from := kv.Rev{Main: m.last.Main}
	lower, upper := changeBounds(from)
	it, err := m.store.newIter(lower, upper, m.needs)
	if err != nil {
		return 0, err
	}
	scan := newChangeScan(it, from, m.last)
	for scan.next() {
		switch c := &scan.change; {
		case !inRange(c.user, key, end):
		case c.kind == changeCreate:
			count++
		case c.kind == changeDelete:
			count--
		}
	}
	return count, errors.Join(scan.err, it.Close())
}

// CountsDue reports whether CountStep has something to do.
func (s *Store) CountsDue() bool { return s.census.Due() }

// CountStats describes the census of the keys.
func (s *Store) CountStats() census.Stats { return s.census.Stats() }

// Bounds of a step. Of a key with more versions only the newest are read.
const (
	stepRows     = 1 << 18
	stepVersions = 32
)

// CountStep counts the keys of some thousands, so that counts need not walk over them any more, and reports whether nothing is
// left to count. It may run beside readers and the writer, but not beside itself.
func (s *Store) CountStep() (done bool, err error) {
	survey, due := s.census.Begin()
	if !due {
		return true, nil
	}
	w := surveyor{survey: survey}
	end, err := w.walk(s)
	if err != nil || survey.Floor > survey.Revision {
		s.census.Drop(survey)
		return false, err
	}
	s.census.Finish(survey, end)
	return !s.census.Due(), nil
}

// surveyor walks over versions for one survey.
type surveyor struct {
	survey   *census.Survey
	prefix   []byte // of the current key
	user     []byte
	versions []census.Version
	decided  bool // older versions do not matter
	partly   bool // older versions were not read
}

// walk visits the rows of the span, and reports whether it reached its end.
func (w *surveyor) walk(s *Store) (end bool, err error) {
	lower, upper := versionBounds(w.survey.Span.Key, w.survey.Span.End)
	it, err := s.engine.NewIter(lower, upper)
	if err != nil {
		return false, fmt.Errorf("mvcc: count keys: %w", err)
	}
	// A compaction may have come since; the rows that it deletes lie below it (invariant 3).
	w.survey.Floor = max(s.CompactRevision(), 0)
	valid, enough := it.First(), false
	for rows := 0; valid && rows < stepRows; rows++ {
		prefix, rev, ok := splitVersionKey(it.Key())
		if !ok {
			err = fmt.Errorf("%w: version key %x", ErrCorruptRow, it.Key())
			break
		}
		if !bytes.Equal(prefix, w.prefix) {
			if enough = w.flush(); enough {
				break
			}
			w.prefix, w.decided, w.partly = append(w.prefix[:0], prefix...), false, false
		}
		w.see(rev.Main, it.ValueLen() != tombstoneLen)
		if w.decided {
			valid = it.NextPrefix()
		} else {
			valid = it.Next()
		}
	}
	err = errors.Join(err, it.Error(), it.Close())
	if err != nil || enough || valid {
		return false, err
	}
	return !w.flush(), nil
}

// see adds a version of the key.
func (w *surveyor) see(rev kv.Revision, live bool) {
	switch {
	case rev > w.survey.Revision:
		return
	case len(w.versions) == stepVersions:
		w.partly, w.decided = true, true
		return
	}
	w.versions = append(w.versions, census.Version{Revision: rev, Live: live})
	w.decided = rev <= w.survey.Floor
}

// flush passes a key to the survey with the versions that were read.
func (w *surveyor) flush() (enough bool) {
	if len(w.prefix) == 0 {
		return false
	}
	w.user, _ = appendUser(w.user[:0], w.prefix)
	enough = w.survey.Add(w.user, w.versions, !w.partly)
	w.versions = w.versions[:0]
	return enough
}
