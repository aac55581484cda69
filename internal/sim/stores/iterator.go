package stores

import "github.com/quorate/quorate/internal/storage/engine"

// iterator is an iterator of a pebble: each move may read from the disk.
type iterator struct {
	engine.Iterator
	turn turn
}

// First implements engine.Iterator.
func (i *iterator) First() bool {
	defer i.turn.yield()()
	return i.Iterator.First()
}

// Last implements engine.Iterator.
func (i *iterator) Last() bool {
	defer i.turn.yield()()
	return i.Iterator.Last()
}

// SeekGE implements engine.Iterator.
func (i *iterator) SeekGE(key []byte) bool {
	defer i.turn.yield()()
	return i.Iterator.SeekGE(key)
}

// SeekLT implements engine.Iterator.
func (i *iterator) SeekLT(key []byte) bool {
	defer i.turn.yield()()
	return i.Iterator.SeekLT(key)
}

// SeekPrefix implements engine.Iterator.
func (i *iterator) SeekPrefix(key []byte) bool {
	defer i.turn.yield()()
	return i.Iterator.SeekPrefix(key)
}

// Next implements engine.Iterator.
func (i *iterator) Next() bool {
	defer i.turn.yield()()
	return i.Iterator.Next()
}

// Prev implements engine.Iterator.
func (i *iterator) Prev() bool {
	defer i.turn.yield()()
	return i.Iterator.Prev()
}

// NextPrefix implements engine.Iterator.
func (i *iterator) NextPrefix() bool {
	defer i.turn.yield()()
	return i.Iterator.NextPrefix()
}

// Value implements engine.Iterator: it may be read only now.
func (i *iterator) Value() []byte {
	defer i.turn.yield()()
	return i.Iterator.Value()
}

// ValueLen implements engine.Iterator.
func (i *iterator) ValueLen() int {
	defer i.turn.yield()()
	return i.Iterator.ValueLen()
}

// Close implements engine.Iterator.
func (i *iterator) Close() error {
	defer i.turn.yield()()
	return i.Iterator.Close()
}
