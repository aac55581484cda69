package mvcc

import (
	"fmt"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// changeScan reads changes in their order.
type changeScan struct {
	rows     engine.Iterator
	from, to kv.Rev
	started  bool
	pack     packReader
	err      error

	rev    kv.Rev
	change change // valid until next
}

// changeBounds are the bounds of the rows that may hold changes from a revision on. There is no upper bound: a pack has the key
// of its last change.
func changeBounds(from kv.Rev) (lower, upper []byte) {
	return appendChangeKey(nil, from), []byte{tableChanges + 1}
}

// newChangeScan walks over the changes from and to included. rows has the bounds of changeBounds(from); the caller closes it.
func newChangeScan(rows engine.Iterator, from, to kv.Rev) changeScan {
	return changeScan{rows: rows, from: from, to: to}
}

// next moves to the next change; false at the end, or after an error, which is in err.
func (c *changeScan) next() bool {
	for c.err == nil {
		if !c.pack.exhausted() {
			ok := false
			if c.change, ok = c.pack.next(); !ok {
				return c.fail("changes up to revision %d", c.pack.last.Main)
			}
			if c.rev = c.pack.at; later(c.rev, c.to) {
				return false
			}
			if !later(c.from, c.rev) {
				return true
			}
			continue
		}
		valid := false
		if c.started {
			valid = c.rows.Next()
		} else {
			c.started = true
			valid = c.rows.First()
		}
		if !valid {
			c.err = c.rows.Error()
			return false
		}
		if !c.enter() {
			return false
		}
	}
	return false
}

// enter opens the row of rows, whose changes next reads. It returns false after an error.
func (c *changeScan) enter() bool {
	rev, ok := decodeChangeKey(c.rows.Key())
	if !ok {
		return c.fail("change key %x", c.rows.Key())
	}
	row := c.rows.Value()
	if c.err = c.rows.Error(); c.err != nil { // the iterator's row is not valid after an error
		return false
	}
	if c.pack, ok = openPack(row, rev); !ok {
		return c.fail("changes up to revision %d", rev.Main)
	}
	return true
}

func (c *changeScan) fail(format string, at any) bool {
	c.err = fmt.Errorf("%w: "+format, ErrCorruptRow, at)
	return false
}
