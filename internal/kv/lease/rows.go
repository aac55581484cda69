package lease

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/quorate/quorate/internal/kv"
)

// Rows of the lease table, below a prefix that the state machine passes:
//
//	prefix 'g' id                ->  TTL in seconds, varint: granted; and a byte, 1, if it is ending
//	prefix 'k' id key            ->  (empty): the key is attached to the lease
//
// An id is 8 bytes, big-endian, with its sign bit inverted, so that rows are in the order of ids, and every lease before the
// first key.
const (
	rowLease = 'g'
	rowKey   = 'k'

	markEnding = 1

	// GrantedRows is the kind of row that each lease has once.
	GrantedRows = rowLease

	signBit = 1 << 63
)

// Table receives the rows of the replicated half: the engine batch of the entry being applied.
type Table interface {
	Set(key, value []byte)
	DeleteRaw(key []byte)
}

// Rows is the lease table seen through one engine batch, which Begin begins.
type Rows struct {
	Table   Table
	Reader  Reader // nil: the caller only attaches keys
	Prefix  []byte
	changed map[kv.LeaseID]*changedKeys // by this batch
	ended   map[kv.LeaseID][]byte       // of leases that are ending: the first key that may still be attached
	buf     []byte
}

func (r *Rows) row(kind byte, id kv.LeaseID) []byte {
	r.buf = appendRow(r.buf[:0], r.Prefix, kind, id)
	return r.buf
}

func appendRow(dst, prefix []byte, kind byte, id kv.LeaseID) []byte {
	dst = append(append(dst, prefix...), kind)
	return binary.BigEndian.AppendUint64(dst, uint64(id)^signBit)
}

// Reader reads the rows of the table that are committed.
type Reader interface {
	// Scan calls visit with the key of each row in [lower, upper), in order, until it returns false. The key is valid during
	// the call. The error is an operating error.
	Scan(lower, upper []byte, visit func(key []byte) bool) error
	// Has reports whether there is a row. The error is an operating error.
	Has(key []byte) (bool, error)
}

// Visitor visits the keys of leases.
type Visitor interface {
	// VisitKeys calls visit with each key attached to a lease, in order, until it returns false; of a lease that does not exist
	// there are none. The key is valid during the call. The error is an operating error.
	VisitKeys(id kv.LeaseID, visit func(key []byte) bool) error
}

// Committed are the keys of leases as of the last committed batch.
type Committed struct {
	Reader Reader
	Prefix []byte
}

// VisitKeys implements Visitor.
func (c *Committed) VisitKeys(id kv.LeaseID, visit func(key []byte) bool) error {
	return c.visitFrom(id, nil, visit)
}

func (c *Committed) visitFrom(id kv.LeaseID, first []byte, visit func(key []byte) bool) error {
	all := appendRow(nil, c.Prefix, rowKey, id)
	return c.Reader.Scan(append(bytes.Clone(all), first...), endOf(all), func(row []byte) bool { return visit(row[len(all):]) })
}

// endOf is the least key above all that begin with the row of an id.
func endOf(row []byte) []byte {
	end := bytes.Clone(row)
	for i := len(end) - 1; ; i-- { // ends: the kind is not 0xff
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
}

// VisitKeys implements Visitor: the keys attached to a lease with all changes of this batch. visit may detach the key.
func (r *Rows) VisitKeys(id kv.LeaseID, visit func(key []byte) bool) error {
	of, first := r.changed[id], r.ended[id]
	added, more := of.added(), true
	for len(added) > 0 && added[0] < string(first) {
		added = added[1:]
	}
	if of == nil || !of.anew {
		committed := Committed{Reader: r.Reader, Prefix: r.Prefix}
		err := committed.visitFrom(id, first, func(key []byte) bool {
			for ; more && len(added) > 0 && added[0] < string(key); added = added[1:] {
				more = visit([]byte(added[0]))
			}
			if !more || of.knows(key) { // keys that the batch attached come from added
				return more
			}
			more = visit(key)
			return more
		})
		if err != nil {
			return err
		}
	}
	for ; more && len(added) > 0; added = added[1:] {
		more = visit([]byte(added[0]))
	}
	return nil
}

// changedKeys are the changes of a lease by a batch.
type changedKeys struct {
	anew  bool            // a lease of this id ended or began in this batch: no committed row belongs to it
	hangs map[string]bool // whether a key is attached to it
}

// added returns the keys attached to the lease since the batch began, sorted.
func (c *changedKeys) added() []string {
	if c == nil {
		return nil
	}
	var keys []string
	for key, hangs := range c.hangs {
		if hangs {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (c *changedKeys) knows(key []byte) bool {
	if c == nil {
		return false
	}
	_, known := c.hangs[string(key)]
	return known
}

// hangs reports whether key, whose row is given, is attached to a lease that exists: a version may name one that did not exist
// when the version was loaded.
func (r *Rows) hangs(id kv.LeaseID, key, row []byte) (bool, error) {
	of := r.changed[id]
	if of != nil {
		if hangs, known := of.hangs[string(key)]; known || of.anew {
			return hangs, nil
		}
	}
	return r.Reader.Has(row)
}

// of returns this batch's changes of a lease; nil if the caller only attaches keys.
func (r *Rows) of(id kv.LeaseID) *changedKeys {
	if r.Reader == nil {
		return nil
	}
	if r.changed == nil {
		r.changed = map[kv.LeaseID]*changedKeys{}
	}
	if r.changed[id] == nil {
		r.changed[id] = &changedKeys{hangs: map[string]bool{}}
	}
	return r.changed[id]
}

// anew notes that a lease ended, or began: it has no keys.
func (r *Rows) anew(id kv.LeaseID) {
	delete(r.ended, id)
	if of := r.of(id); of != nil {
		of.anew, of.hangs = true, map[string]bool{}
	}
}

// note keeps the change of a key until the batch is committed.
func (r *Rows) note(id kv.LeaseID, key []byte, hangs bool) {
	if of := r.of(id); of != nil {
		of.hangs[string(key)] = hangs
	}
}

// end notes that all keys of a lease up to one are gone, and that no more come. So the next part neither sees the keys that
// were dropped in the same batch, nor passes over all that were deleted before. It is not needed after a restart.
func (r *Rows) end(id kv.LeaseID, last []byte) {
	if r.ended == nil {
		r.ended = map[kv.LeaseID][]byte{}
	}
	r.ended[id] = append(bytes.Clone(last), 0)
}

// Begin begins a batch.
func (r *Rows) Begin(table Table) {
	r.Table, r.changed = table, nil
}
