package engine

import (
	"bytes"
	"context"
	"sync"

	"github.com/tidwall/btree"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/files"
)

// MemOptions of OpenMem.
type MemOptions struct {
	FS      env.FS
	Dir     string
	OnFlush func()
}

type memItem struct{ key, value []byte }

type memTree = btree.BTreeG[memItem]

// Mem is the deterministic engine: a copy-on-write tree in memory. Flush writes all of it as one file, so it is meant
// for stores of a few megabytes.
type Mem struct {
	options MemOptions
	// commit orders batches; mu guards the pointers and the tree of the writer. A tree that was handed out as a copy is
	// never written again.
	mu      sync.Mutex
	live    *memTree
	durable *memTree // as of the last Flush; never modified
	closed  bool
	flushes int64
	flushed uint64
	disk    uint64
}

func newMemTree() *memTree {
	return btree.NewBTreeGOptions(func(a, b memItem) bool { return bytes.Compare(a.key, b.key) < 0 },
		btree.Options{NoLocks: true})
}

// OpenMem opens or creates a store in memory whose durable state is one file in Dir.
func OpenMem(options MemOptions) (*Mem, error) {
	if options.FS == nil {
		options.FS = files.Disk
	}
	if err := durable.MakeDir(options.FS, options.Dir); err != nil {
		return nil, diskError(options.Dir, err)
	}
	tree, size, err := readMemFile(options.FS, options.Dir)
	if err != nil {
		return nil, err
	}
	m := &Mem{options: options, live: tree, disk: size}
	m.durable = tree.IsoCopy()
	return m, nil
}

// snapshot returns a tree that is never modified.
func (m *Mem) snapshot() (*memTree, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	return m.live.IsoCopy(), nil
}

// Get implements Engine.
func (m *Mem) Get(key []byte) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, false, ErrClosed
	}
	item, found := m.live.Get(memItem{key: key})
	return item.value, found, nil // values are never modified in place
}

// GetDurable implements Engine.
func (m *Mem) GetDurable(key []byte) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, false, ErrClosed
	}
	item, found := m.durable.Get(memItem{key: key})
	return item.value, found, nil
}

// NewIter implements Engine.
func (m *Mem) NewIter(lower, upper []byte) (Iterator, error) {
	tree, err := m.snapshot()
	if err != nil {
		return nil, err
	}
	return &memIterator{tree: tree, lower: lower, upper: upper}, nil
}

// NewBatch implements Engine.
func (m *Mem) NewBatch() Batch { return &memBatch{mem: m} }

// Flush implements Engine.
func (m *Mem) Flush() error {
	tree, err := m.snapshot()
	if err != nil {
		return err
	}
	size, err := writeMemFile(m.options.FS, m.options.Dir, tree)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.durable = tree
	m.flushes++
	m.flushed += size
	m.disk = size
	m.mu.Unlock()
	if m.options.OnFlush != nil {
		m.options.OnFlush()
	}
	return nil
}

// Checkpoint implements Engine.
func (m *Mem) Checkpoint(dir string) error {
	if err := m.Flush(); err != nil {
		return err
	}
	m.mu.Lock()
	tree := m.durable
	m.mu.Unlock()
	if err := durable.MakeDir(m.options.FS, dir); err != nil {
		return diskError(dir, err)
	}
	_, err := writeMemFile(m.options.FS, dir, tree)
	return err
}

// Defragment implements Engine: the file never holds what was deleted.
func (m *Mem) Defragment(context.Context) error { return m.Flush() }

// Reclaim implements Engine.
func (m *Mem) Reclaim(context.Context, bool) error { return m.Flush() }

// DiskBytes implements Engine.
func (m *Mem) DiskBytes(lower, upper []byte) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, ErrClosed
	}
	var size uint64
	m.durable.Ascend(memItem{key: lower}, func(item memItem) bool {
		if upper != nil && bytes.Compare(item.key, upper) >= 0 {
			return false
		}
		size += uint64(len(item.key) + len(item.value))
		return true
	})
	return size, nil
}

// BoundBytes implements Engine.
func (m *Mem) BoundBytes() int64 { return 0 }

// Stats implements Engine.
func (m *Mem) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Stats{DiskBytes: m.disk, LiveBytes: m.disk, FlushedBytes: m.flushed, Flushes: m.flushes}
}

// Close implements Engine.
func (m *Mem) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	m.closed = true
	return nil
}
