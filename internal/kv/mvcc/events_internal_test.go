package mvcc

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

func memEngine(t *testing.T) engine.Engine {
	t.Helper()
	eng, err := engine.OpenMem(engine.MemOptions{FS: filestest.NewMem(), Dir: "store"})
	if err != nil {
		t.Fatal(err)
	}
	return eng
}

func openOn(t *testing.T, eng engine.Engine) *Store {
	t.Helper()
	s, err := Open(eng, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// commit runs one command and commits it.
func commit(t *testing.T, s *Store, change func(w *Writer)) {
	t.Helper()
	w := s.Begin()
	w.BeginCommand()
	change(w)
	w.EndCommand()
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

// In any order of keys, and with any values, no more is in memory than a query may return, and one revision.
func TestKeptChanges_loaded(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		const maxBytes, largest = 100 * EventOverhead, 40 * EventOverhead
		var refs []changeRef
		sizes := map[kv.Rev]int{}
		for main := kv.Revision(1); main <= 20; main++ {
			for sub := range 1 + r.IntN(3) {
				rev := kv.Rev{Main: main, Sub: int64(sub)}
				refs, sizes[rev] = append(refs, changeRef{rev: rev}), EventOverhead+r.IntN(largest-EventOverhead)
			}
		}
		wanted, filled := kv.Revision(0), 0 // the last revision that is returned
		for _, ref := range refs {
			if filled < maxBytes || ref.rev.Main == wanted {
				wanted, filled = ref.rev.Main, filled+sizes[ref.rev]
			}
		}
		kept := newKeptChanges(refs, &EventQuery{MaxBytes: maxBytes}, 21)
		for _, i := range r.Perm(len(refs)) {
			if refs[i].rev.Main >= kept.next {
				continue
			}
			refs[i].event.KV.Value = make([]byte, sizes[refs[i].rev]-EventOverhead)
			if err := kept.loaded(&refs[i]); err != nil {
				t.Fatal(err)
			}
			held := 0
			for i := range refs {
				if refs[i].event.Kind == kv.EventPut && refs[i].event.KV.Value != nil {
					held += eventBytes(&refs[i].event)
				}
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

// A watch that begins at an old revision reads a chunk of large values, not all values of a thousand revisions.
func TestStore_EventsSince_largeValues(t *testing.T) {
	eng := &valuesCounter{Engine: memEngine(t)}
	s := openOn(t, eng)
	const revisions, size = 200, 64 << 10
	for i := range revisions {
		commit(t, s, func(w *Writer) { w.Put(fmt.Appendf(nil, "k%04d", i), bytes.Repeat([]byte{byte(i)}, size), 0) })
	}
	seen := 0
	for next := kv.Revision(1); next <= s.Revision(); {
		eng.bytes = 0
		changes, after, err := s.EventsSince(EventQuery{From: next, MaxBytes: 4 * size})
		if err != nil {
			t.Fatal(err)
		}
		next = after
		if seen += len(changes); eng.bytes > 6*size {
			t.Fatalf("%d bytes read for %d events of %d", eng.bytes, len(changes), size)
		}
	}
	if seen != revisions {
		t.Errorf("%d events, want %d", seen, revisions)
	}
}

// A revision that is too large is reported, and ends no query of the revisions before it.
func TestStore_EventsSince_largeRevision(t *testing.T) {
	s := openOn(t, memEngine(t))
	const keys, size = 100, 1000
	for i := range keys {
		commit(t, s, func(w *Writer) { w.Put(fmt.Appendf(nil, "k%02d", i), make([]byte, size), 0) })
	}
	large := s.Revision() + 1
	commit(t, s, func(w *Writer) { w.DeleteRange([]byte("k"), []byte("l"), nil) })
	commit(t, s, func(w *Writer) { w.Put([]byte("a"), []byte("v"), 0) })
	query := EventQuery{From: large - 1, Prev: true, MaxBytes: 20 * size, MaxRevisionBytes: 50 * size}
	changes, next, err := s.EventsSince(query)
	if err != nil || len(changes) != 1 || next != large {
		t.Errorf("before it: %d changes, next %d, %v", len(changes), next, err)
	}
	query.From = large
	var tooLarge *LargeRevisionError
	if _, _, err := s.EventsSince(query); !errors.As(err, &tooLarge) || tooLarge.Revision != large {
		t.Errorf("got %v, want that revision %d is too large", err, large)
	}
	query.Prev = false
	if changes, _, err := s.EventsSince(query); err != nil || len(changes) != 2 || len(changes[0].Events) != keys {
		t.Errorf("without previous pairs: %d changes, %v", len(changes), err)
	}
	query.From, query.Prev = large+1, true
	if changes, _, err := s.EventsSince(query); err != nil || len(changes) != 1 {
		t.Errorf("behind it: %d changes, %v", len(changes), err)
	}
}

// Large keys count before they are copied.
func TestStore_EventsSince_largeKeys(t *testing.T) {
	mem := memEngine(t)
	s := openOn(t, mem)
	const keys, size = 50, 100 << 10
	for i := range keys {
		commit(t, s, func(w *Writer) { w.Put(append(fmt.Appendf(nil, "%03d", i), make([]byte, size)...), nil, 0) })
	}
	it, err := mem.NewIter(changeBounds(kv.Rev{}))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	query := &EventQuery{To: s.Revision(), MaxRevisions: 1000, MaxBytes: 3 * size}
	found, next, err := collectChanges(newChangeScan(it, kv.Rev{}, allOf(query.To)), query, query.keys())
	if err != nil || len(found) != 3 || next != found[2].rev.Main+1 {
		t.Errorf("%d keys are in memory, next %d, %v; want 3", len(found), next, err)
	}
}
