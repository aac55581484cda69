package mvcc

import (
	"bytes"

	"github.com/quorate/quorate/internal/kv"
)

// Rows takes the pairs of an answer, so that each value is copied once on its way from the store to the wire.
type Rows interface {
	// Append adds the next pair, whose key and value are valid until it returns. An error ends the read.
	Append(pair *kv.KeyValue) error
	// Reset drops the pairs so far: the read begins again, at a newer revision.
	Reset()
}

// RowsFunc is Rows of a read at a given revision, which does not begin again.
type RowsFunc func(pair *kv.KeyValue) error

// Append implements Rows.
func (f RowsFunc) Append(pair *kv.KeyValue) error { return f(pair) }

// Reset implements Rows.
func (RowsFunc) Reset() {}

// Page is an answer whose pairs went to Rows.
type Page struct {
	Result   kv.RangeResult // it has pairs only if the range is of one key; the cache may share them
	Given    int64          // number of pairs that went to Rows
	Last     []byte         // the key of the last of them, if there are more
	Revision kv.Revision    // the published one, also with an error
}

// given is the state of a collector that passes its pairs on.
type given struct {
	rows  Rows
	pair  kv.KeyValue // being passed on
	count int64
	more  bool
	last  []byte // the key at the limit
}

func (g *given) add(op *kv.RangeOp, key []byte, rec *record, mod kv.Revision) error {
	if op.Limit > 0 && g.count == op.Limit {
		g.more = true
		return nil
	}
	if g.count++; g.count == op.Limit {
		g.last = bytes.Clone(key)
	}
	g.pair = kv.KeyValue{Key: key, CreateRevision: rec.create, ModRevision: mod, Version: rec.version}
	if !op.KeysOnly { // what strip leaves
		g.pair.Value, g.pair.Lease = rec.value, rec.lease
	}
	return g.rows.Append(&g.pair)
}

// leave notes that there are keys beyond the limit.
func (g *given) leave() {
	if g != nil {
		g.more = true
	}
}
