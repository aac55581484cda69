package mvcc

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/kv"
)

// changedKeys are the keys that a part of the history deleted, or, if the query asks for existing ones, changed: all that an
// answer may have, and others.
type changedKeys struct {
	store   *Store
	q       *DeletedQuery
	from    []byte      // the first key that is wanted
	rev     kv.Revision // the last visible one
	account kv.Account
	walk    walk

	looked int // changes
	keys   map[string]struct{}
	bytes  int
	cut    []byte // keys from here on were dropped; nil: none
}

const (
	// maxChangedBytes bounds the keys that are collected, with changedOverhead for each. Beyond that the last ones are dropped,
	// and are left to the next page.
	maxChangedBytes = 1 << 20
	changedOverhead = 64
)

// collect walks over the changes from a revision on. It returns false if there are too many, or if some are gone.
func (c *changedKeys) collect(from kv.Rev) (whole bool, err error) {
	lower, upper := changeBounds(from)
	it, err := c.store.newIter(lower, upper, from.Main-1)
	if errors.Is(err, kv.ErrCompacted) {
		return false, nil // the rows of versions are still in the older iterator
	}
	if err != nil {
		return false, err
	}
	c.keys = map[string]struct{}{}
	scan := newChangeScan(it, from, allOf(c.rev))
	whole = true
	for left := c.q.Changes; whole && err == nil && scan.next(); left-- {
		if whole = left > 0; whole {
			c.looked++
			err = c.see(&scan.change)
		}
	}
	if err = errors.Join(err, scan.err); err != nil {
		err = fmt.Errorf("mvcc: look for deleted keys: %w", err)
	}
	return whole, errors.Join(err, it.Close())
}

// see adds, or drops, the key of a change.
func (c *changedKeys) see(change *change) error {
	user := change.user
	if err := c.walk.over(len(user) + changedOverhead); err != nil {
		return err
	}
	if string(user) < string(c.from) || !inRange(user, c.q.Key, c.q.End) || c.cut != nil && string(user) >= string(c.cut) {
		return nil
	}
	_, known := c.keys[string(user)]
	switch {
	case change.kind == changeCreate:
		if known && !c.q.Existing { // it exists
			delete(c.keys, string(user))
			c.bytes -= len(user) + changedOverhead
		}
		return nil
	case known, change.kind == changeUpdate && !(c.q.Existing && c.q.At > 0):
		return nil
	}
	c.keys[string(user)] = struct{}{}
	if c.bytes += len(user) + changedOverhead; c.bytes > maxChangedBytes && len(c.keys) > 1 {
		c.drop()
	}
	return c.account.Take(len(user) + changedOverhead)
}

// drop drops the last half of the keys.
func (c *changedKeys) drop() {
	sorted := c.inOrder()
	half := sorted[len(sorted)/2:]
	c.cut = []byte(half[0])
	for _, user := range half {
		delete(c.keys, user)
		c.bytes -= len(user) + changedOverhead
	}
}

func (c *changedKeys) inOrder() []string { return slices.Sorted(maps.Keys(c.keys)) }
