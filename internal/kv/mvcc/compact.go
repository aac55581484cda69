package mvcc

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// compactor deletes the rows that the compact revision made unreachable. It walks the table of changes, in order, from the last
// compact revision to this one. Each change names the version that it replaced, so the walk reads no versions; if a change does
// not name it, the version is looked up. The rows of changes are deleted in one batch with the versions that they name, so they
// record the progress, too: after a crash the walk begins at the first that is left. A pack is deleted with its last change. So
// one may be left that begins with changes which were walked before; at and done tell which ones.
//
// A key keeps its newest version at or below the compact revision, unless that is a tombstone, and everything at the compact
// revision itself, since a watch may start there. So, compacting at C after a compaction at B:
//
//   - the version that a change replaced is deleted, unless it is of revision C; if the change is of revision B, the version
//     was deleted with B already unless it is of revision B, too;
//   - a tombstone is deleted with its own change, unless it is of revision C.
//
// No version is deleted twice (engine.Batch.SingleDelete needs that): a version that is looked up exists, and one that a row
// names is deleted with that row. Nor is one written twice, as its revision is in its key.
type compactor struct {
	store *Store
	mu    sync.Mutex // one step at a time
	done  kv.Revision
	// at is where the next step continues among the changes at the compact revision, which stay. It belongs to target.
	at     kv.Rev
	target kv.Revision

	droppedVersions, droppedBytes atomic.Int64
}

// stepChanges bounds the changes of a step.
const stepChanges = 4096

func (c *compactor) load() error {
	var versions, size int64
	err := readNumbers(c.store.engine, droppedRow, (*int64)(&c.done), &versions, &size)
	if err == nil {
		err = readNumbers(c.store.engine, walkedRow, (*int64)(&c.target), (*int64)(&c.at.Main), &c.at.Sub)
	}
	if err != nil {
		return err
	}
	c.droppedVersions.Store(versions)
	c.droppedBytes.Store(size)
	return nil
}

// CompactStep walks at most maxChanges changes, 4,096 if that is less, deletes the versions that they replaced, and reports
// whether the compaction is complete. It may run beside readers and the writer. Later calls continue where it stopped, also
// after a crash.
func (s *Store) CompactStep(maxChanges int) (done bool, err error) {
	c := &s.compactor
	c.mu.Lock()
	defer c.mu.Unlock()
	target := s.state.Load().compact
	if target <= c.done {
		return true, nil
	}
	if c.at == (kv.Rev{}) { // a walk continues to its own target: its changes must not be walked twice
		c.target = target
	}
	if err := c.step(min(max(maxChanges, 1), stepChanges)); err != nil {
		return false, err
	}
	return c.done == target, nil
}

// CompactedTo returns the compact revision up to which rows are deleted, -1 if there never was a compaction.
func (s *Store) CompactedTo() kv.Revision {
	s.compactor.mu.Lock()
	defer s.compactor.mu.Unlock()
	return s.compactor.done
}

// CompactedVersions returns how many versions of keys compactions have deleted from this store.
func (s *Store) CompactedVersions() int64 { return s.compactor.droppedVersions.Load() }

// CompactedBytes returns how many bytes compactions have deleted from this store, counted as Size.LogicalBytes is.
func (s *Store) CompactedBytes() int64 { return s.compactor.droppedBytes.Load() }

// deletion is the batch of one step.
type deletion struct {
	batch    engine.Batch
	key      []byte
	versions int64
	bytes    int64
	lookup   engine.Iterator // of versions, taken at the first need
}

func (d *deletion) close() error {
	if d.lookup != nil {
		return errors.Join(d.lookup.Close(), d.batch.Close())
	}
	return d.batch.Close()
}

// drop deletes one version.
func (d *deletion) drop(user []byte, at position) {
	d.key = appendVersionKey(d.key[:0], user, at.rev)
	d.batch.SingleDelete(d.key)
	d.versions++
	d.bytes += versionBytes(len(d.key), at.row, len(user))
}

func (c *compactor) step(maxChanges int) (err error) {
	d := &deletion{batch: c.store.engine.NewBatch()}
	defer func() { err = errors.Join(err, d.close()) }()
	first, next, err := c.walk(d, maxChanges)
	if err != nil {
		return fmt.Errorf("mvcc: compact to revision %d: %w", c.target, err)
	}
	c.deleteChanges(d, first, next)
	versions, size := c.droppedVersions.Load()+d.versions, c.droppedBytes.Load()+d.bytes
	doneTo := c.done
	if next == (kv.Rev{}) {
		doneTo = c.target
	}
	d.batch.Set(droppedRow, appendNumbers(nil, int64(doneTo), versions, size))
	d.batch.Set(walkedRow, appendNumbers(nil, int64(c.target), int64(next.Main), next.Sub))
	if err := d.batch.Commit(); err != nil {
		return fmt.Errorf("mvcc: compact to revision %d: %w", c.target, err)
	}
	c.droppedVersions.Store(versions)
	c.droppedBytes.Store(size)
	c.done, c.at = doneTo, next
	return nil
}

// walk deletes the versions that the next changes replaced. first is the first of these changes, next the one after them; each
// is zero if there is none.
func (c *compactor) walk(d *deletion, maxChanges int) (first, next kv.Rev, err error) {
	from := c.at
	if from == (kv.Rev{}) {
		from.Main = max(c.done, 0)
	}
	it, err := c.store.engine.NewIter(changeBounds(from))
	if err != nil {
		return first, next, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	count := 0
	scan := newChangeScan(it, from, allOf(c.target))
	for scan.next() {
		if count == 0 {
			first = scan.rev
		}
		if count++; count > maxChanges {
			return first, scan.rev, nil
		}
		if err := c.drop(d, &scan.change, scan.rev); err != nil {
			return first, next, err
		}
	}
	return first, next, scan.err
}

// drop applies the rules above to one change.
func (c *compactor) drop(d *deletion, change *change, rev kv.Rev) error {
	if change.kind != changeCreate && !change.named {
		if err := d.lookUp(c.store.engine, change, rev); err != nil {
			return err
		}
	}
	if before := change.before; change.named && before.rev.Main < c.target && (rev.Main > c.done || before.rev.Main >= c.done) {
		d.drop(change.user, before)
	}
	if change.kind == changeDelete && rev.Main < c.target {
		d.drop(change.user, position{rev, tombstoneLen})
	}
	return nil
}

// lookUp finds the version that a change replaced, if the change does not name it.
func (d *deletion) lookUp(eng engine.Engine, change *change, rev kv.Rev) (err error) {
	if d.lookup == nil {
		if d.lookup, err = eng.NewIter([]byte{tableVersions}, []byte{tableVersions + 1}); err != nil {
			return err
		}
	}
	it := d.lookup
	d.key = appendVersionKey(d.key[:0], change.user, rev)
	if !it.SeekPrefix(d.key) || !bytes.Equal(it.Key(), d.key) {
		if err = it.Error(); err == nil {
			err = fmt.Errorf("%w: no version at %x", ErrCorruptRow, d.key)
		}
		return err
	}
	if !it.Next() {
		return it.Error()
	}
	prefix, before, ok := splitVersionKey(it.Key())
	if !ok {
		return fmt.Errorf("%w: version key %x", ErrCorruptRow, it.Key())
	}
	if bytes.Equal(prefix, d.key[:len(d.key)-suffixLen]) && it.ValueLen() != tombstoneLen {
		change.before, change.named = position{before, it.ValueLen()}, true
	}
	return nil
}

// deleteChanges deletes the rows of changes from first to before next, but not of those at the compact revision.
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
