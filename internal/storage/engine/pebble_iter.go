package engine

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// lsmIterator narrows Pebble's iterator to ours.
type lsmIterator struct {
	*pebble.Iterator
	dir string
}

// firstKey is above the rows of the engine itself.
var firstKey = []byte{1}

// NewIter implements Engine. The filters of the last level are on: they cost a look into memory, and spare most reads
// of keys that do not exist a block.
func (e *lsm) NewIter(lower, upper []byte) (Iterator, error) {
	if e.closed.Load() {
		return nil, ErrClosed
	}
	if lower == nil {
		lower = firstKey
	}
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper, UseL6Filters: true})
	if err != nil {
		return nil, diskError(e.options.Dir, err)
	}
	return lsmIterator{it, e.options.Dir}, nil
}

// SeekPrefix implements Iterator.
func (it lsmIterator) SeekPrefix(key []byte) bool { return it.SeekPrefixGE(key) }

// ValueLen implements Iterator.
func (it lsmIterator) ValueLen() int {
	value := it.LazyValue()
	return value.Len()
}

// Error implements Iterator.
func (it lsmIterator) Error() error {
	if err := it.Iterator.Error(); err != nil {
		return diskError(it.dir, err)
	}
	return nil
}

// Close implements Iterator. An error that Error has told is told again, as Pebble does.
func (it lsmIterator) Close() error {
	if err := it.Iterator.Close(); err != nil {
		return diskError(it.dir, err)
	}
	return nil
}

// lsmBatch is a Pebble batch. Its setters cannot fail while it is open.
type lsmBatch struct {
	engine *lsm
	batch  *pebble.Batch
	err    error
}

func (b *lsmBatch) note(err error) {
	if err != nil && b.err == nil {
		b.err = err
	}
}

// Set implements Batch.
func (b *lsmBatch) Set(key, value []byte) { b.note(b.batch.Set(key, value, nil)) }

// Delete implements Batch.
func (b *lsmBatch) Delete(key []byte) { b.note(b.batch.Delete(key, nil)) }

// SingleDelete implements Batch.
func (b *lsmBatch) SingleDelete(key []byte) { b.note(b.batch.SingleDelete(key, nil)) }

// DeleteRange implements Batch.
func (b *lsmBatch) DeleteRange(lower, upper []byte) { b.note(b.batch.DeleteRange(lower, upper, nil)) }

// Len implements Batch.
func (b *lsmBatch) Len() int { return b.batch.Len() }

// Empty implements Batch.
func (b *lsmBatch) Empty() bool { return b.batch.Empty() }

// Commit implements Batch. Once a flush has failed it refuses: memory would fill up with what can never be durable.
func (b *lsmBatch) Commit() error {
	if b.engine.closed.Load() {
		return ErrClosed
	}
	if err := b.engine.failureNow(); err != nil {
		return err
	}
	if b.err != nil {
		return fmt.Errorf("engine: build a batch: %w", b.err)
	}
	b.engine.pacing.committed(b.batch.Len(), int(b.batch.Count()))
	if err := b.batch.Commit(pebble.NoSync); err != nil {
		return diskError(b.engine.options.Dir, err)
	}
	return nil
}

// Reset implements Batch.
func (b *lsmBatch) Reset() {
	b.batch.Reset()
	b.err = nil
}

// Close implements Batch.
func (b *lsmBatch) Close() error { return b.batch.Close() }
