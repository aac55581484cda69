package mvcc

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// VersionQuery asks for the versions of one key, the newest first.
type VersionQuery struct {
	Key     []byte
	Before  kv.Revision // only versions below it; not positive: all that are kept
	Values  bool        // with values
	Authors bool        // with authors
	Limit   int         // versions, at least 1
	Bytes   int         // of values in the answer, or of rows that are read; the first version may exceed it
}

// Version is what one revision made of a key: a value, or its deletion. Of a deletion only ModRevision counts.
type Version struct {
	kv.KeyValue // Key is empty, Value only if it was asked for
	Deleted     bool
	Size        int        // of the value, in bytes
	By          *kv.Author // nil: it was not asked for, or is not known
}

// VersionPage is a part of the history of a key.
type VersionPage struct {
	Versions []Version
	Next     kv.Revision // ask for those before it; 0: no older one is kept
	History
}

// History says which revisions a page covers.
type History struct {
	Revision kv.Revision // the published one
	First    kv.Revision // the oldest one that can be read
}

// DeletedQuery asks for the keys of a range that are gone, and can still be read at an earlier revision.
type DeletedQuery struct {
	Key, End []byte // by etcd's rules for a range's end
	// At says which keys are meant: those that existed at this revision. Not positive: those that existed at any revision that
	// is kept; each is then read at the revision before its last deletion.
	At kv.Revision
	// Existing asks also for keys that exist now, if they were deleted meanwhile; with At, if they were written meanwhile.
	Existing bool
	Authors  bool   // with authors of deletions
	From     []byte // the first key to look at; nil: Key
	Limit    int    // keys in the answer, at least 1
	Bytes    int    // of keys in the answer, and of rows that are read; the first key may exceed it
	Rows     int    // to look at, at least 1
	Changes  int    // to look at, in the place of rows, where the history is short
}

// DeletedKey is a key of a range, and what an earlier revision had.
type DeletedKey struct {
	Key     []byte
	Deleted kv.Revision // its last deletion; 0: it was only written, since DeletedQuery.At
	// Read is the revision at which Was is read: the one before Deleted, or DeletedQuery.At.
	Read kv.Revision
	Was  Version    // without its value
	Now  Version    // the key as it exists now, without its value; ModRevision is 0 if it does not
	Same bool       // it exists now with the same value
	By   *kv.Author // of the deletion; nil: it was not asked for, is not known, or there is none
}

// DeletedPage is a part of an answer, in the order of keys.
type DeletedPage struct {
	Keys   []DeletedKey
	Next   []byte // the first key that was not looked at; nil: the range is done
	Looked int    // rows, and changes
	History
}

// versionOverhead is the memory of a Version beside its value.
const versionOverhead = 96

// Versions returns versions of a key as far as its history is kept: those after the compact revision, and the one that was
// current at the compact revision. Of a revision that changed the key several times only the last change is returned. The
// values are counted in account. The error is account's, or an operating error.
func (s *Store) Versions(q *VersionQuery, account kv.Account) (page VersionPage, err error) {
	current, err := s.atRevision(0, func(rev kv.Revision) error {
		it, err := s.newIter(nil, nil, rev)
		if err != nil {
			return err
		}
		h := &versionWalk{it: it, q: q, floor: s.CompactRevision(), account: account, walk: walk{account: account}}
		page = VersionPage{History: History{First: max(h.floor, 1)}}
		if q.Authors {
			h.authors, err = s.lookAuthors(&h.walk)
		}
		if err == nil {
			err = h.run(&page, rev)
		}
		if closeErr := errors.Join(it.Close(), h.authors.close()); err == nil && closeErr != nil {
			err = fmt.Errorf("mvcc: close an iterator: %w", closeErr)
		}
		return err
	})
	page.Revision = current
	return page, err
}

// versionWalk walks over the versions of one key.
type versionWalk struct {
	it      engine.Iterator
	q       *VersionQuery
	floor   kv.Revision // the compact revision; rows below the first one that is not above it may be gone
	account kv.Account
	walk    walk
	read    int           // bytes
	authors *authorLookup // nil: they are not asked for
}

// run fills a page with versions up to rev.
func (h *versionWalk) run(page *VersionPage, rev kv.Revision) error {
	from := rev
	if h.q.Before > 0 {
		// The version that was current at the compact revision is found from there on, and returned if it is below Before.
		from = min(rev, max(h.q.Before-1, h.floor))
	}
	var buf []byte
	at, size, err := seekVersion(h.it, &buf, h.q.Key, allOf(from))
	for last := kv.MaxRevision; err == nil && size > 0; at, size, err = h.next() {
		if at.Main == last { // an earlier change of a revision that was seen
			continue
		}
		last = at.Main
		tombstone := size == tombstoneLen
		if h.q.Before > 0 && at.Main >= h.q.Before || tombstone && at.Main < h.floor {
			return nil // in both cases no older one is kept
		}
		if len(page.Versions) > 0 && (len(page.Versions) >= h.q.Limit || h.read+size > h.q.Bytes) {
			page.Next = page.Versions[len(page.Versions)-1].ModRevision
			return nil
		}
		h.read += size
		if err := h.add(page, at, size); err != nil || at.Main <= h.floor {
			return err
		}
	}
	return err
}

// add reads the row at which the iterator is.
func (h *versionWalk) add(page *VersionPage, at kv.Rev, size int) error {
	taken := versionOverhead
	if h.authors != nil {
		taken += authorOverhead
	}
	if h.q.Values {
		taken += size
	}
	if err := h.account.Take(taken); err != nil {
		return err
	}
	if err := h.walk.over(size); err != nil {
		return err
	}
	rec, err := recordAt(h.it, at)
	if err != nil {
		return fmt.Errorf("%w: key %q at revision %d", err, h.q.Key, at.Main)
	}
	one := Version{Deleted: rec.tombstone, Size: len(rec.value), KeyValue: kv.KeyValue{ModRevision: at.Main,
		CreateRevision: rec.create, Version: rec.version, Lease: rec.lease}}
	if h.q.Values && !rec.tombstone {
		one.Value = append([]byte{}, rec.value...)
	}
	if h.authors != nil && at.Main >= h.floor { // each member deletes the rows of earlier changes at its own pace
		if one.By, err = h.authors.of(at); err != nil {
			return err
		}
	}
	page.Versions = append(page.Versions, one)
	return nil
}

// next moves to the next older row of the key; its length is zero at the end.
func (h *versionWalk) next() (at kv.Rev, size int, err error) {
	if err := h.walk.over(kv.WalkKeyBytes); err != nil {
		return at, 0, err
	}
	if !h.it.Next() {
		if err := h.it.Error(); err != nil {
			return at, 0, fmt.Errorf("mvcc: walk over versions: %w", err)
		}
		return at, 0, nil
	}
	_, at, ok := splitVersionKey(h.it.Key())
	if !ok {
		return at, 0, fmt.Errorf("%w: version key %x", ErrCorruptRow, h.it.Key())
	}
	return at, max(1, h.it.ValueLen()), nil
}

// recordAt decodes the row at which an iterator is; its value is valid until the iterator moves.
func recordAt(it engine.Iterator, at kv.Rev) (record, error) {
	rec, err := decodeRecord(it.Value(), at.Main)
	if readErr := it.Error(); readErr != nil {
		err = fmt.Errorf("mvcc: read a version: %w", readErr)
	}
	return rec, err
}
