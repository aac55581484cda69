package mvcc

import (
	"fmt"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// changeScan walks over changes in their order, whatever rows they are in.
type changeScan struct {
	rows     engine.Iterator
	form     Form // the latest one that the build knows
	from, to kv.Rev
	started  bool
	pack     packReader
	err      error

	rev    kv.Rev
	change change // valid until next
}

// changeBounds are the bounds of the rows that may hold changes from a revision on. There is no bound above: a pack lies at
// the key of its last change.
func changeBounds(from kv.Rev) (lower, upper []byte) {
	return appendChangeKey(nil, from), []byte{tableChanges + 1}
}

// newChangeScan walks over the changes from and to included. rows has the bounds of changeBounds(from); the caller closes it.
func newChangeScan(rows engine.Iterator, form Form, from, to kv.Rev) changeScan {
	return changeScan{rows: rows, form: form, from: from, to: to}
}

// next goes to the next change; false at the end, or after an error, which is in err.
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
		if single, end := c.enter(); single || end {
			return single
		}
	}
	return false
}

// enter looks at the row of rows: a single change, a pack whose changes next reads, or the end.
func (c *changeScan) enter() (single, end bool) {
	rev, ok := decodeChangeKey(c.rows.Key())
	if !ok {
		c.fail("change key %x", c.rows.Key())
		return false, true
	}
	row := c.rows.Value()
	if err := c.rows.Error(); err != nil { // what was read is not what the row holds
		c.err = err
		return false, true
	}
	if isPack(row) {
		if c.pack, ok = openPack(row, rev); !ok || c.form > FormPacked {
			c.fail("changes up to revision %d", rev.Main)
			return false, true
		}
		return false, false
	}
	if later(rev, c.to) {
		return false, true
	}
	c.rev = rev
	if c.change, ok = decodeChange(row, rev); !ok || c.change.named && c.form > FormNamed {
		c.fail("change at revision %d", rev.Main)
		return false, true
	}
	return true, false
}

func (c *changeScan) fail(format string, at any) bool {
	c.err = fmt.Errorf("%w: "+format, ErrCorruptRow, at)
	return false
}
