package engine

import (
	"bytes"

	"github.com/quorate/quorate/internal/base/invariant"
)

type memOpKind uint8

const (
	memSet memOpKind = iota
	memDelete
	memSingleDelete
	memDeleteRange
)

type memOp struct {
	kind       memOpKind
	key, value []byte // value is the upper bound of a memDeleteRange
}

// memBatch is a list of operations that Commit performs in order.
type memBatch struct {
	mem  *Mem
	ops  []memOp
	size int
}

func (b *memBatch) add(kind memOpKind, key, value []byte) {
	buf := make([]byte, len(key)+len(value))
	copy(buf, key)
	copy(buf[len(key):], value)
	b.ops = append(b.ops, memOp{kind: kind, key: buf[:len(key):len(key)], value: buf[len(key):]})
	b.size += len(buf) + 2
}

// Set implements Batch.
func (b *memBatch) Set(key, value []byte) { b.add(memSet, key, value) }

// Delete implements Batch.
func (b *memBatch) Delete(key []byte) { b.add(memDelete, key, nil) }

// SingleDelete implements Batch.
func (b *memBatch) SingleDelete(key []byte) { b.add(memSingleDelete, key, nil) }

// DeleteRange implements Batch.
func (b *memBatch) DeleteRange(lower, upper []byte) { b.add(memDeleteRange, lower, upper) }

// Len implements Batch.
func (b *memBatch) Len() int { return b.size }

// Empty implements Batch.
func (b *memBatch) Empty() bool { return len(b.ops) == 0 }

// Reset implements Batch.
func (b *memBatch) Reset() {
	clear(b.ops)
	b.ops, b.size = b.ops[:0], 0
}

// Close implements Batch.
func (b *memBatch) Close() error { return nil }

// Commit implements Batch.
func (b *memBatch) Commit() error {
	b.mem.mu.Lock()
	defer b.mem.mu.Unlock()
	if b.mem.closed {
		return ErrClosed
	}
	tree := b.mem.live
	for _, op := range b.ops {
		switch op.kind {
		case memSet:
			tree.Set(memItem{key: op.key, value: op.value})
		case memDelete:
			tree.Delete(memItem{key: op.key})
		case memSingleDelete:
			_, found := tree.Delete(memItem{key: op.key})
			invariant.True(found, "what is deleted once is there: key %x", op.key)
		case memDeleteRange:
			deleteMemRange(tree, op.key, op.value)
		}
	}
	return nil
}

// deleteMemRange collects first: the tree must not change under its own walk.
func deleteMemRange(tree *memTree, lower, upper []byte) {
	var doomed []memItem
	tree.Ascend(memItem{key: lower}, func(item memItem) bool {
		if bytes.Compare(item.key, upper) >= 0 {
			return false
		}
		doomed = append(doomed, item)
		return true
	})
	for _, item := range doomed {
		tree.Delete(item)
	}
}
