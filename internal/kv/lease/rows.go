package lease

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/quorate/quorate/internal/kv"
)

// Rows of the lease table, below a prefix that the state machine gives:
//
//	prefix 'g' id                ->  TTL in seconds, varint: granted; and a byte, 1, if it is ending
//	prefix 'k' id key            ->  (empty): key hangs on the lease
//
// An id is 8 bytes, big-endian, with its sign turned, so that rows stand in the order of ids, and every lease before
// the first key.
const (
	rowLease = 'g'
	rowKey   = 'k'

	markEnding = 1

	// GrantedRows is the kind of rows of which there is one for each lease.
	GrantedRows = rowLease

	signBit = 1 << 63
)

// Table is where the replicated half is written: the engine batch of the entry being applied.
type Table interface {
	Set(key, value []byte)
	DeleteRaw(key []byte)
}

// Rows is the lease table seen through one engine batch, which Begin begins.
type Rows struct {
	Table   Table
	Reader  Reader // nil: keys are attached, and nothing else
	Prefix  []byte
	changed map[kv.LeaseID]*changedKeys // by this batch
	ended   map[kv.LeaseID][]byte       // of leases that are ending: the first key that may be left
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
	// VisitKeys calls visit with each key that hangs on a lease, in order, until it returns false; of a lease that does not
	// exist there are none. The key is valid during the call. The error is an operating error.
	VisitKeys(id kv.LeaseID, visit func(key []byte) bool) error
}

// Committed is the keys of leases as the last batch that was committed left them.
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
	for i := len(end) - 1; ; i-- { // the kind is no 0xff
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
}

// VisitKeys implements Visitor: what hangs on a lease with all that this batch has changed. The key that is visited may be
// detached meanwhile.
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
			if !more || of.knows(key) { // what the batch has added comes from there
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

// changedKeys are what a batch has changed of a lease.
type changedKeys struct {
	anew  bool            // a lease of this id ended in this batch, or began: no row that is committed is of it
	hangs map[string]bool // whether a key hangs on it
}

// added returns the keys that hang on the lease since the batch began, sorted.
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

// hangs reports whether key, whose row is given, hangs on a lease that exists: a version may name one that did not when it
// was loaded.
func (r *Rows) hangs(id kv.LeaseID, key, row []byte) (bool, error) {
	of := r.changed[id]
	if of != nil {
		if hangs, known := of.hangs[string(key)]; known || of.anew {
			return hangs, nil
		}
	}
	return r.Reader.Has(row)
}

// of returns what this batch has changed of a lease; nil for who only attaches keys.
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

// anew takes note that a lease ended, or began: it has no keys.
func (r *Rows) anew(id kv.LeaseID) {
	delete(r.ended, id)
	if of := r.of(id); of != nil {
		of.anew, of.hangs = true, map[string]bool{}
	}
}

// note takes down what became of a key, until the batch is committed.
func (r *Rows) note(id kv.LeaseID, key []byte, hangs bool) {
	if of := r.of(id); of != nil {
		of.hangs[string(key)] = hangs
	}
}

// end takes note that all keys of a lease up to one are gone, and that no more come. So the next part neither sees what was
// dropped in the same batch, nor looks at all that was deleted before. It is not needed after a start.
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
