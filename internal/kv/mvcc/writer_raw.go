package mvcc

import (
	"bytes"
	"fmt"

	"github.com/quorate/quorate/internal/invariant"
)

// rawOverlay holds the pending writes of the other tables, for GetRaw.
type rawOverlay struct {
	byKey  map[string]rawWrite
	ranges []rawRange
	turn   int
}

// rawWrite is the latest write of one key; a nil value is a deletion.
type rawWrite struct {
	value []byte
	turn  int
}

type rawRange struct {
	lower, upper []byte
	turn         int
}

func (o *rawOverlay) init() { o.byKey = make(map[string]rawWrite) }

func (o *rawOverlay) reset() {
	clear(o.byKey)
	o.ranges, o.turn = nil, 0
}

func checkTable(key []byte) {
	invariant.True(len(key) > 0, "a raw key begins with a table byte")
	switch key[0] {
	case 0, tableVersions, tableChanges, tableNumbers:
		invariant.Broken("raw key %q has a table byte of its own", key)
	}
}

// Set writes a row of another table of the replicated state, in the same batch. Its first byte names the table: any but
// 0x00 and those of this package.
func (w *Writer) Set(key, value []byte) {
	checkTable(key)
	w.batch.Set(key, value)
	w.raw.turn++
	w.raw.byKey[string(key)] = rawWrite{value: append([]byte{}, value...), turn: w.raw.turn}
}

// DeleteRaw deletes a row of another table.
func (w *Writer) DeleteRaw(key []byte) {
	checkTable(key)
	w.batch.Delete(key)
	w.raw.turn++
	w.raw.byKey[string(key)] = rawWrite{turn: w.raw.turn}
}

// SetUnread is Set for a row that nobody asks GetRaw for while this batch is not committed. It keeps no copy.
func (w *Writer) SetUnread(key, value []byte) {
	checkTable(key)
	w.batch.Set(key, value)
}

// DeleteUnread is DeleteRaw for a row that nobody asks GetRaw for while this batch is not committed. It keeps no copy.
func (w *Writer) DeleteUnread(key []byte) {
	checkTable(key)
	w.batch.Delete(key)
}

// DeleteRawRange deletes the rows in [lower, upper) of one other table.
func (w *Writer) DeleteRawRange(lower, upper []byte) {
	checkTable(lower)
	invariant.True(len(upper) > 0 && (upper[0] == lower[0] || upper[0] == lower[0]+1 && len(upper) == 1),
		"raw range %q to %q stays in one table", lower, upper)
	w.batch.DeleteRange(lower, upper)
	w.raw.turn++
	w.raw.ranges = append(w.raw.ranges,
		rawRange{lower: bytes.Clone(lower), upper: bytes.Clone(upper), turn: w.raw.turn})
}

// GetRaw reads a row of another table as this Writer sees it.
func (w *Writer) GetRaw(key []byte) (value []byte, found bool) {
	write, pending := w.raw.byKey[string(key)]
	for _, r := range w.raw.ranges {
		if r.turn > write.turn && bytes.Compare(r.lower, key) <= 0 && bytes.Compare(key, r.upper) < 0 {
			return nil, false
		}
	}
	if pending {
		return write.value, write.value != nil
	}
	value, found, err := w.store.engine.Get(key)
	if err != nil {
		w.note(fmt.Errorf("mvcc: read row %q: %w", key, err))
		return nil, false
	}
	return value, found
}
