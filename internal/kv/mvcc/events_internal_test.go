package mvcc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Whatever the order of keys is, and whatever their values are, no more is in memory than a query may return, and one revision.
func TestKeptChanges_loaded(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		const maxBytes, largest = 100, 40
		var refs []changeRef
		sizes := map[kv.Rev]int{}
		for main := kv.Revision(1); main <= 20; main++ {
			for sub := range 1 + r.IntN(3) {
				rev := kv.Rev{Main: main, Sub: int64(sub)}
				refs, sizes[rev] = append(refs, changeRef{rev: rev}), r.IntN(largest)
			}
		}
		wanted, filled := kv.Revision(0), 0 // the last revision that is returned
		for _, ref := range refs {
			if filled < maxBytes || ref.rev.Main == wanted {
				wanted, filled = ref.rev.Main, filled+sizes[ref.rev]
			}
		}
		kept := newKeptChanges(refs, maxBytes, 21)
		for _, i := range r.Perm(len(refs)) {
			if refs[i].rev.Main >= kept.next {
				continue
			}
			refs[i].event.KV.Value = make([]byte, sizes[refs[i].rev])
			kept.loaded(&refs[i])
			held := 0
			for i := range refs {
				held += eventBytes(&refs[i].event)
			}
			if held >= maxBytes+3*largest || held != kept.bytes {
				t.Fatalf("seed %d: %d bytes in memory, %d counted, of %d", seed, held, kept.bytes, maxBytes)
			}
		}
		if kept.bytes != filled || kept.next != wanted+1 {
			t.Fatalf("seed %d: %d bytes before revision %d, want %d before %d", seed, kept.bytes, kept.next, filled, wanted+1)
		}
	}
}

// valuesCounter counts the bytes of values that are read from the table of versions.
type valuesCounter struct {
	engine.Engine
	bytes int
}

type valuesIter struct {
	engine.Iterator
	bytes *int
}

func (c *valuesCounter) NewIter(lower, upper []byte) (engine.Iterator, error) {
	it, err := c.Engine.NewIter(lower, upper)
	if len(lower) > 0 && lower[0] == tableVersions {
		it = &valuesIter{it, &c.bytes}
	}
	return it, err
}

func (it *valuesIter) Value() []byte {
	value := it.Iterator.Value()
	*it.bytes += len(value)
	return value
}

// A watch that begins at an old revision reads a chunk of large values, not all that a thousand revisions have.
func TestStore_EventsSince_largeValues(t *testing.T) {
	mem, err := engine.OpenMem(engine.MemOptions{FS: vfs.NewMem(), Dir: "store"})
	if err != nil {
		t.Fatal(err)
	}
	eng := &valuesCounter{Engine: mem}
	s, err := Open(eng, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const revisions, size = 200, 64 << 10
	for i := range revisions {
		w := s.Begin()
		w.BeginCommand()
		w.Put(fmt.Appendf(nil, "k%04d", i), bytes.Repeat([]byte{byte(i)}, size), 0)
		w.EndCommand()
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	for next := kv.Revision(1); next <= s.Revision(); {
		eng.bytes = 0
		var changes []Change
		if changes, next, err = s.EventsSince(EventQuery{From: next, MaxBytes: 4 * size}); err != nil {
			t.Fatal(err)
		}
		if seen += len(changes); eng.bytes > 6*size {
			t.Fatalf("%d bytes read for %d events of %d", eng.bytes, len(changes), size)
		}
	}
	if seen != revisions {
		t.Errorf("%d events, want %d", seen, revisions)
	}
}
