package engine

import (
	"bytes"

	"github.com/tidwall/btree"
)

// memIterator walks a tree that is never modified.
type memIterator struct {
	tree         *memTree
	cursor       btree.IterG[memItem]
	started      bool
	valid        bool
	lower, upper []byte
	prefix       []byte // not nil: Next stays within it
}

func (it *memIterator) start() {
	if !it.started {
		it.cursor = it.tree.Iter()
		it.started = true
	}
}

// settle takes the outcome of a move and applies the bounds.
func (it *memIterator) settle(moved bool) bool {
	it.valid = moved && it.inBounds(it.cursor.Item().key)
	return it.valid
}

func (it *memIterator) inBounds(key []byte) bool {
	if it.lower != nil && bytes.Compare(key, it.lower) < 0 {
		return false
	}
	if it.upper != nil && bytes.Compare(key, it.upper) >= 0 {
		return false
	}
	return it.prefix == nil || bytes.HasPrefix(key, it.prefix) && Split(key) == len(it.prefix)
}

// First implements Iterator.
func (it *memIterator) First() bool {
	if it.lower != nil {
		return it.SeekGE(it.lower)
	}
	it.start()
	it.prefix = nil
	return it.settle(it.cursor.First())
}

// Last implements Iterator.
func (it *memIterator) Last() bool {
	if it.upper != nil {
		return it.SeekLT(it.upper)
	}
	it.start()
	it.prefix = nil
	return it.settle(it.cursor.Last())
}

// SeekGE implements Iterator.
func (it *memIterator) SeekGE(key []byte) bool {
	it.prefix = nil
	return it.seek(key)
}

func (it *memIterator) seek(key []byte) bool {
	it.start()
	if it.lower != nil && bytes.Compare(key, it.lower) < 0 {
		key = it.lower
	}
	return it.settle(it.cursor.Seek(memItem{key: key}))
}

// SeekPrefix implements Iterator.
func (it *memIterator) SeekPrefix(key []byte) bool {
	it.prefix = bytes.Clone(key[:Split(key)])
	return it.seek(key)
}

// SeekLT implements Iterator.
func (it *memIterator) SeekLT(key []byte) bool {
	it.start()
	it.prefix = nil
	if it.upper != nil && bytes.Compare(key, it.upper) > 0 {
		key = it.upper
	}
	if it.cursor.Seek(memItem{key: key}) {
		return it.settle(it.cursor.Prev())
	}
	return it.settle(it.cursor.Last())
}

// Next implements Iterator.
func (it *memIterator) Next() bool { return it.valid && it.settle(it.cursor.Next()) }

// Prev implements Iterator.
func (it *memIterator) Prev() bool { return it.valid && it.settle(it.cursor.Prev()) }

// NextPrefix implements Iterator.
func (it *memIterator) NextPrefix() bool {
	if !it.valid {
		return false
	}
	key := it.cursor.Item().key
	n := Split(key)
	if n == len(key) {
		return it.Next()
	}
	// No suffix sorts after one of all 0xff with one more byte.
	beyond := make([]byte, n, len(key)+1)
	copy(beyond, key)
	for len(beyond) < cap(beyond) {
		beyond = append(beyond, 0xff)
	}
	return it.SeekGE(beyond)
}

// Valid implements Iterator.
func (it *memIterator) Valid() bool { return it.valid }

// Key implements Iterator.
func (it *memIterator) Key() []byte { return it.cursor.Item().key }

// Value implements Iterator.
func (it *memIterator) Value() []byte { return it.cursor.Item().value }

// ValueLen implements Iterator.
func (it *memIterator) ValueLen() int { return len(it.Value()) }

// Error implements Iterator.
func (it *memIterator) Error() error { return nil }

// Close implements Iterator.
func (it *memIterator) Close() error {
	it.tree, it.valid = nil, false
	return nil
}
