package replay

import (
	"errors"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/durable"
)

// copyAfter is how many bytes of segments are applied at least between two copies of a store: reading and applying them again
// takes about as long as a copy. Each segment counts segmentCost beside its bytes, for the request.
const (
	copyAfter   = 4 << 20
	segmentCost = 64 << 10
	copyRoom    = 256 << 20 // with less room on the disk copies are removed: compactions write tables anew
)

// Endings of the directories of copies, beside that of the store.
const (
	baseCopy = ".base"
	logCopy  = ".log"
)

// copies are copies of the store, beside it, to which a restore goes back from entries that are not the cluster's: else each
// segment that somebody made up would let the base be downloaded again. They are made of links, and only once that has
// happened. They are removed at the end, before a base is downloaded, and where room goes: the links keep former tables on the
// disk.
type copies struct {
	*Options
	catalog *backup.Catalog
	wanted  bool    // a base was to be downloaded again
	bytes   int64   // of the base
	first   *copied // the base as it was downloaded
	last    *copied // before a segment of which others begin beside it
	since   int64   // that was applied since the last copy: copyAfter
}

// copied is a copy of a store, and the state of it.
type copied struct {
	dir   string
	state State // without a store
}

// of returns the copy from which a plan can go on, and what is left of its segments; nil: there is none.
func (c *copies) of(p *backup.Plan) (*copied, []backup.Stored) {
	for _, one := range []*copied{c.last, c.first} {
		if one != nil {
			if left, through := one.state.rest(p); through {
				return one, left
			}
		}
	}
	return nil, nil
}

// drop removes all copies.
func (c *copies) drop() error {
	had := c.first != nil || c.last != nil
	c.first, c.last, c.since = nil, nil, 0
	if !had {
		return nil
	}
	return c.remove()
}

// remove removes the directories of copies: also those that a process left which was killed.
func (c *copies) remove() error {
	return errors.Join(c.FS.RemoveAll(c.Dir+baseCopy), c.FS.RemoveAll(c.Dir+logCopy))
}

// fit reports whether there is still room beside the copies: for a base as large as this one, or for copyRoom.
func (c *copies) fit() bool { return c.Room == nil || c.Room(min(c.bytes, copyRoom)) == nil }

// afterBase copies the base that was just opened, if a copy is wanted: links take no room yet.
func (c *copies) afterBase(s *State, bytes int64) error {
	if !c.wanted {
		return nil
	}
	c.bytes = bytes
	return c.copy(s, baseCopy, &c.first)
}

// beforeSegment copies the store before a segment, if others begin beside that, and enough was applied since the last copy.
func (c *copies) beforeSegment(s *State, next *backup.Stored) (err error) {
	if c.first == nil {
		return nil
	}
	if c.since >= copyAfter {
		if !c.fit() {
			return c.drop()
		}
		if c.contested(next) {
			err = c.copy(s, logCopy, &c.last)
		}
	}
	c.since += next.Size + segmentCost
	return err
}

// contested reports whether another segment begins where a segment has entries.
func (c *copies) contested(s *backup.Stored) bool {
	i := c.catalog.FirstFrom(s.First)
	for ; i < len(c.catalog.Segments) && c.catalog.Segments[i].First <= s.End.Index; i++ {
		if c.catalog.Segments[i].Hash != s.Hash {
			return true
		}
	}
	return false
}

// copy copies the store. A copy that fails, as for a disk that is full, ends no restore: it goes on without any.
func (c *copies) copy(s *State, ending string, as **copied) error {
	dir := c.Dir + ending
	if errors.Join(c.FS.RemoveAll(dir), s.store.Checkpoint(dir)) != nil {
		c.first, c.last, c.wanted = nil, nil, false
		return c.remove()
	}
	c.since = 0
	one := &copied{dir, *s}
	one.state.store, one.state.Machine = nil, nil
	*as = one
	return nil
}

// reopen makes a copy the store of a state that goes on.
func (c *copies) reopen(one *copied) (_ *State, err error) {
	if err := c.FS.RemoveAll(c.Dir); err != nil {
		return nil, err
	}
	store, err := c.OpenEngine(one.dir)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(store.Checkpoint(c.Dir), store.Close()); err != nil {
		return nil, err
	}
	if c.Durable {
		if err := durable.SyncDir(c.FS, c.Dir); err != nil {
			return nil, err
		}
	}
	s := one.state
	if s.store, err = c.OpenEngine(c.Dir); err != nil {
		return nil, err
	}
	if s.Machine, err = apply.Open(s.store, c.Apply); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	c.since = 0
	return &s, nil
}
