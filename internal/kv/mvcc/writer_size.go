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
	Keys, Bytes int64  // of keys and values
	Next        []byte // the first key that was not counted; nil: all were
}

// Measure counts the keys of a range as this Writer sees them, and their bytes, until it has looked at most: kv.WalkKeyBytes
// for a key, and its value. It counts one key at least.
func (w *Writer) Measure(key, end []byte, most int64) (m Measured) {
	c := w.cursor(key, end, w.Revision(), nil)
	for c.next() {
		if most <= 0 {
			m.Next = bytes.Clone(c.key())
			break
		}
		rec, _, err := c.version()
		if err != nil {
			w.note(err)
			break
		}
		m.Keys++
		m.Bytes += int64(len(c.key()) + len(rec.value))
		most -= kv.WalkKeyBytes + int64(len(rec.value))
	}
	w.note(c.close())
	return m
}
