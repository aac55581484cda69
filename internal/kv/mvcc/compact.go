package mvcc

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// compactor deletes the rows that the compact revision made unreachable. It walks the table of changes up to the
// compact revision: every key with something to delete has an update or a deletion there. The rows of that table go as
// they are done, so they are the progress, too: after a crash the walk begins at the first that is left.
//
// What stays for a key: its newest version at or below the compact revision, unless that is a tombstone, and everything
// at the compact revision itself, since a watch may start there.
type compactor struct {
	store *Store
	mu    sync.Mutex // one step at a time
	done  kv.Revision
	// at is where the next step goes on among the rows at the compact revision, which are not deleted.
	at     kv.Rev
	target kv.Revision
	part   *part // begun and not complete, nil if there is none

	droppedVersions, droppedBytes atomic.Int64
}

// part is a stretch of the table of changes whose keys are being cleaned. It is read once, and cleaned by as many steps as
// that takes.
type part struct {
	prefixes    [][]byte // of the keys that are left, sorted
	first, next kv.Rev   // its first change; the change behind it, zero if there is none
}

// A step looks at no more than stepDeletions changes and ends after the key that brings it to as many deletions; from
// rangeDeletionAt on, versions of a key go by one range.
const (
	stepDeletions   = 4096
	rangeDeletionAt = 32
)

func (c *compactor) load() error {
	var versions, size int64
	if err := readNumbers(c.store.engine, droppedRow, (*int64)(&c.done), &versions, &size); err != nil {
		return err
	}
	c.droppedVersions.Store(versions)
	c.droppedBytes.Store(size)
	return nil
}

// CompactStep deletes the superseded versions of at most maxKeys changed keys, 4,096 if that is less, and reports whether
// nothing is left to do. It may run beside readers and the writer. What it does not finish, also before a crash, later
// calls do.
func (s *Store) CompactStep(maxKeys int) (done bool, err error) {
	c := &s.compactor
	c.mu.Lock()
	defer c.mu.Unlock()
	target := s.state.Load().compact
	if target <= c.done {
		return true, nil
	}
	if target != c.target {
		c.target, c.at, c.part = target, kv.Rev{}, nil
	}
	return c.step(min(max(maxKeys, 1), stepDeletions))
}

// CompactedTo returns the compact revision up to which rows are deleted, -1 if there never was a compaction.
func (s *Store) CompactedTo() kv.Revision {
	s.compactor.mu.Lock()
	defer s.compactor.mu.Unlock()
	return s.compactor.done
}

// CompactedVersions returns how many versions of keys compactions have deleted from this store.
func (s *Store) CompactedVersions() int64 { return s.compactor.droppedVersions.Load() }

// deletion is the batch of one step.
type deletion struct {
	batch    engine.Batch
	versions int64
	bytes    int64
}

func (c *compactor) step(maxKeys int) (done bool, err error) {
	if c.part == nil {
		if c.part, err = c.changes(maxKeys); err != nil {
			return false, err
		}
	}
	p := c.part
	d := &deletion{batch: c.store.engine.NewBatch()}
	defer func() { err = errors.Join(err, d.batch.Close()) }()
	left, err := c.deleteVersions(d, p.prefixes)
	if err != nil {
		return false, err
	}
	complete := len(left) == 0
	finished := complete && p.next == (kv.Rev{})
	if complete {
		c.deleteChanges(d, p.first, p.next)
	}
	versions, size := c.droppedVersions.Load()+d.versions, c.droppedBytes.Load()+d.bytes
	doneTo := c.done
	if finished {
		doneTo = c.target
	}
	if d.versions > 0 || finished || !d.batch.Empty() {
		d.batch.Set(droppedRow, appendNumbers(nil, int64(doneTo), versions, size))
		if err := d.batch.Commit(); err != nil {
			return false, fmt.Errorf("mvcc: compact to revision %d: %w", c.target, err)
		}
	}
	c.droppedVersions.Store(versions)
	c.droppedBytes.Store(size)
	c.done = doneTo
	if p.prefixes = left; complete {
		c.at, c.part = p.next, nil
	}
	return finished, nil
}

// changes reads the next part.
func (c *compactor) changes(maxKeys int) (p *part, err error) {
	p = &part{}
	lower := appendChangeKey(nil, c.at)
	upper := appendChangeKey(nil, kv.Rev{Main: c.target + 1})
	it, err := c.store.engine.NewIter(lower, upper)
	if err != nil {
		return nil, fmt.Errorf("mvcc: compact to revision %d: %w", c.target, err)
	}
	count := 0
	for valid := it.First(); valid; valid = it.Next() {
		rev, ok := decodeChangeKey(it.Key())
		if !ok {
			err = fmt.Errorf("%w: change key %x", ErrCorruptRow, it.Key())
			break
		}
		if count == 0 {
			p.first = rev
		}
		if count == maxKeys {
			p.next = rev
			break
		}
		kind, user, ok := decodeChange(it.Value())
		if !ok {
			err = fmt.Errorf("%w: change at revision %d", ErrCorruptRow, rev.Main)
			break
		}
		if count++; kind != changeCreate {
			p.prefixes = append(p.prefixes, appendPrefix(nil, user))
		}
	}
	if err := errors.Join(err, it.Error(), it.Close()); err != nil {
		return nil, fmt.Errorf("mvcc: compact to revision %d: %w", c.target, err)
	}
	slices.SortFunc(p.prefixes, bytes.Compare)
	p.prefixes = slices.CompactFunc(p.prefixes, bytes.Equal)
	return p, nil
}

// deleteChanges deletes the changes from first to before next, but not those at the compact revision.
func (c *compactor) deleteChanges(d *deletion, first, next kv.Rev) {
	end := kv.Rev{Main: c.target}
	if next != (kv.Rev{}) && next.Main < c.target {
		end = next
	}
	if first == (kv.Rev{}) || first.Main >= c.target {
		return
	}
	d.batch.DeleteRange(appendChangeKey(nil, first), appendChangeKey(nil, end))
}

// deleteVersions deletes the dead versions of the given keys, and returns those that were too many for one step.
func (c *compactor) deleteVersions(d *deletion, prefixes [][]byte) (left [][]byte, err error) {
	it, err := c.store.engine.NewIter([]byte{tableVersions}, []byte{tableVersions + 1})
	if err != nil {
		return nil, fmt.Errorf("mvcc: compact to revision %d: %w", c.target, err)
	}
	var seek []byte
	for i, prefix := range prefixes {
		if d.versions >= stepDeletions {
			left = prefixes[i:]
			break
		}
		seek = appendRev(append(seek[:0], prefix...), kv.Rev{Main: c.target, Sub: maxSub})
		it.SeekGE(seek)
		if err = c.deleteDead(d, it, prefix); err != nil {
			break
		}
	}
	if err := errors.Join(err, it.Error(), it.Close()); err != nil {
		return nil, fmt.Errorf("mvcc: compact to revision %d: %w", c.target, err)
	}
	return left, nil
}

// deleteDead deletes the dead versions of one key, all in one batch: a tombstone that went before what it hides would
// bring it back. The iterator is at the key's newest version at or below the target. The dead ones are the oldest of
// the key, all in a row, so many of them are one range.
func (c *compactor) deleteDead(d *deletion, it engine.Iterator, prefix []byte) error {
	var dead [][]byte // the first few
	count := 0
	newest := true
	for ; it.Valid(); it.Next() {
		at, rev, ok := splitVersionKey(it.Key())
		if !ok {
			return fmt.Errorf("%w: version key %x", ErrCorruptRow, it.Key())
		}
		if !bytes.Equal(at, prefix) {
			break
		}
		row := it.Value()
		keep := rev.Main == c.target || newest && !isTombstone(row)
		newest = false
		if keep {
			continue
		}
		if count < rangeDeletionAt {
			dead = append(dead, bytes.Clone(it.Key()))
		}
		count++
		d.versions++
		d.bytes += versionBytes(len(it.Key()), len(row), userLen(prefix))
	}
	if count < rangeDeletionAt {
		for _, key := range dead {
			d.batch.Delete(key)
		}
		return nil
	}
	upper := bytes.Clone(prefix)
	upper[len(upper)-1]++ // see versionBounds
	d.batch.DeleteRange(dead[0], upper)
	return nil
}

// userLen is the length of the user key in a prefix.
func userLen(prefix []byte) int {
	return len(prefix) - 3 - bytes.Count(prefix[1:len(prefix)-2], []byte{0})
}
