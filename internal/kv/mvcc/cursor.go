package mvcc

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// cursor walks over the keys that exist at one revision, in order.
type cursor interface {
	// next moves to the next key; false at the end or after an error.
	next() bool
	// key is valid until next.
	key() []byte
	// mod is the revision of the current version; it needs no read.
	mod() kv.Revision
	// version decodes the current version; its value is valid until next.
	version() (record, kv.Revision, error)
	close() error
}

// seekAfter is the number of versions newer than the revision after which a cursor seeks.
const seekAfter = 4

// engineCursor walks over the version table.
type engineCursor struct {
	it      engine.Iterator
	rev     kv.Rev // the last visible change
	deleted bool   // it stops at tombstones, too
	started bool
	prefix  []byte
	at      kv.Rev // of the current version
	user    []byte // decoded key, if it had to be unescaped
	seek    []byte
	walk    walk
	err     error
}

// next implements cursor. Rows of a key come newest first, so the first that is not too new is the current version; the next
// ones under the same prefix are older.
func (c *engineCursor) next() bool {
	valid := false
	if c.started {
		valid = c.it.NextPrefix()
	} else {
		c.started = true
		valid = c.it.First()
	}
	for tooNew := 0; valid; {
		if c.err = c.walk.over(kv.WalkKeyBytes); c.err != nil {
			return false
		}
		prefix, rev, ok := splitVersionKey(c.it.Key())
		if !ok {
			c.err = fmt.Errorf("%w: version key %x", ErrCorruptRow, c.it.Key())
			return false
		}
		if later(rev, c.rev) {
			if tooNew++; tooNew < seekAfter {
				valid = c.it.Next()
				continue
			}
			tooNew = 0
			c.seek = appendRev(append(c.seek[:0], prefix...), c.rev)
			valid = c.it.SeekGE(c.seek)
			continue
		}
		if c.it.ValueLen() == tombstoneLen && !c.deleted {
			tooNew = 0
			valid = c.it.NextPrefix()
			continue
		}
		c.prefix, c.at = prefix, rev
		return true
	}
	if c.err == nil && c.it.Error() != nil {
		c.err = fmt.Errorf("mvcc: walk at revision %d: %w", c.rev.Main, c.it.Error())
	}
	return false
}

// key implements cursor. Most keys hold no 0x00 and need no copy.
func (c *engineCursor) key() []byte {
	body := c.prefix[1 : len(c.prefix)-2]
	if bytes.IndexByte(body, 0) < 0 {
		return body
	}
	c.user, _ = appendUser(c.user[:0], c.prefix)
	return c.user
}

// mod implements cursor.
func (c *engineCursor) mod() kv.Revision { return c.at.Main }

// version implements cursor.
func (c *engineCursor) version() (record, kv.Revision, error) {
	if err := c.walk.over(c.it.ValueLen()); err != nil {
		return record{}, 0, err
	}
	row := c.it.Value()
	rec, err := decodeRecord(row, c.at.Main)
	if err != nil {
		err = fmt.Errorf("%w: key %q at revision %d", errors.Join(err, c.it.Error()), c.key(), c.at.Main)
	}
	rec.at = position{c.at, len(row)}
	return rec, c.at.Main, err
}

// close implements cursor and returns the first error of the walk.
func (c *engineCursor) close() error {
	if err := c.it.Close(); err != nil && c.err == nil {
		c.err = fmt.Errorf("mvcc: close an iterator: %w", err)
	}
	return c.err
}

// pendingCursor merges the writer's pending versions over the engine's.
type pendingCursor struct {
	under   *engineCursor
	over    []*pendingKey // sorted, in range
	rev     kv.Revision
	deleted bool // as in under
	primed  bool
	underOK bool
	current *pendingVersion // nil: the engine's
}

// next implements cursor.
func (c *pendingCursor) next() bool {
	if !c.primed {
		c.primed = true
		c.underOK = c.under.next()
	} else if c.current == nil {
		c.underOK = c.under.next()
	}
	for {
		c.current = nil
		if len(c.over) == 0 {
			return c.underOK && c.under.err == nil
		}
		order := -1
		if c.underOK {
			order = bytes.Compare(c.over[0].key, c.under.key())
		}
		if order > 0 {
			return true
		}
		version := c.over[0].at(c.rev)
		c.over = c.over[1:]
		if version == nil {
			continue // all pending versions are too new: the engine's is current, if there is one
		}
		if order == 0 {
			c.underOK = c.under.next()
		}
		if !version.tombstone || c.deleted {
			c.current = version
			return true
		}
	}
}

// key implements cursor.
func (c *pendingCursor) key() []byte {
	if c.current != nil {
		return c.current.kv.Key
	}
	return c.under.key()
}

// mod implements cursor.
func (c *pendingCursor) mod() kv.Revision {
	if c.current != nil {
		return c.current.rev.Main
	}
	return c.under.mod()
}

// version implements cursor.
func (c *pendingCursor) version() (record, kv.Revision, error) {
	if c.current == nil {
		return c.under.version()
	}
	rec := c.current.record()
	rec.at = c.current.position()
	return rec, c.current.rev.Main, nil
}

// close implements cursor.
func (c *pendingCursor) close() error { return c.under.close() }
