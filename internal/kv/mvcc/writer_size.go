package mvcc

import (
	"bytes"
	"fmt"

	"github.com/quorate/quorate/internal/kv"
)

// SizeOf returns the length of the value of a key as this Writer sees it, without a copy; false: the key does not exist.
func (w *Writer) SizeOf(key []byte) (value int, exists bool) {
	if found, _, ok := w.cached(key); ok {
		if found == nil {
			return 0, false
		}
		return len(found.Value), true
	}
	row, since := w.rowFromEngine(key, w.base.revision)
	if row == nil {
		return 0, false
	}
	rec, err := decodeRecord(row, since.Main)
	if err != nil {
		w.note(fmt.Errorf("%w: key %q at revision %d", err, key, since.Main))
		return 0, false
	}
	return len(rec.value), !rec.tombstone
}

// Measured is what Measure found.
type Measured struct {
	Keys, Bytes int64  // of keys that exist, and their values
	Next        []byte // the first key that was not looked at; nil: all were
}

// Measure counts the keys of a range as this Writer sees them, and their bytes, until it has looked at most: kv.WalkKeyBytes
// for a key, and its value, and as much for a key that was deleted after the compact revision. It looks at one key at least.
//
// The tombstones of these keys are there on all members. Older ones are not: each member deletes them at its own pace, so that
// the outcome must not depend on them.
func (w *Writer) Measure(key, end []byte, most int64) (m Measured) {
	c := w.cursorOver(key, end, w.Revision(), nil, true)
	for c.next() {
		rec, rev, err := c.version()
		if err != nil {
			w.note(err)
			break
		}
		if rec.tombstone && rev <= w.compact {
			continue
		}
		if most <= 0 {
			m.Next = bytes.Clone(c.key())
			break
		}
		if most -= kv.WalkKeyBytes; !rec.tombstone {
			m.Keys++
			m.Bytes += int64(len(c.key()) + len(rec.value))
			most -= int64(len(rec.value))
		}
	}
	w.note(c.close())
	return m
}
