package mvcc

import "github.com/quorate/quorate/internal/base/invariant"

// Here the Writer takes rows of other tables of the replicated state into its batch. Its reads do not show them before the
// batch is committed.

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
}

// DeleteRaw deletes a row of another table.
func (w *Writer) DeleteRaw(key []byte) {
	checkTable(key)
	w.batch.Delete(key)
}

// DeleteRawRange deletes the rows in [lower, upper) of one other table.
func (w *Writer) DeleteRawRange(lower, upper []byte) {
	checkTable(lower)
	invariant.True(len(upper) > 0 && (upper[0] == lower[0] || upper[0] == lower[0]+1 && len(upper) == 1),
		"raw range %q to %q stays in one table", lower, upper)
	w.batch.DeleteRange(lower, upper)
}
