package mvcc_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

func TestWriter_Compact_refuses(t *testing.T) {
	s := newStore(t, openers[1])
	put(t, s, "a", "1", 0)
	for _, c := range []struct {
		rev  kv.Revision
		want error
	}{
		{-1, kv.ErrCompacted}, {3, kv.ErrFutureRevision}, {0, nil}, {0, kv.ErrCompacted}, {2, nil}, {2, kv.ErrCompacted},
		{1, kv.ErrCompacted},
	} {
		if err := compact(t, s, c.rev); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("compact at %d: got %v, want %v", c.rev, err, c.want)
		}
	}
	if got := s.CompactRevision(); got != 2 {
		t.Errorf("compact revision: got %d, want 2", got)
	}
}

// A watch may start at the compact revision itself, so changes at it are kept, deletions, too; the next compaction deletes
// them.
func TestStore_CompactStep_keepsCompactRevision(t *testing.T) {
	for _, o := range openers {
		t.Run(o.name, func(t *testing.T) {
			s := newStore(t, o)
			put(t, s, "a", "1", 0)                                                          // 2
			put(t, s, "a", "2", 0)                                                          // 3
			do(t, s, func(w *mvcc.Writer) { w.DeleteRange([]byte("a"), nil, nil) })         // 4
			put(t, s, "b", "1", 0)                                                          // 5
			do(t, s, func(w *mvcc.Writer) { w.DeleteRange([]byte("a"), []byte("z"), nil) }) // 6
			if err := compact(t, s, 4); err != nil {
				t.Fatal(err)
			}
			settle(t, s)
			changes, next, err := s.EventsSince(mvcc.EventQuery{From: 4, Prev: true})
			if err != nil || next != 7 || len(changes) != 3 {
				t.Fatalf("got %v, next %d, %v", changes, next, err)
			}
			if e := changes[0].Events[0]; e.Kind != kv.EventDelete || string(e.KV.Key) != "a" || e.Prev != nil {
				t.Errorf("at the compact revision: got %+v", e)
			}
			if e := changes[2].Events[0]; e.Prev == nil || string(e.Prev.Value) != "1" {
				t.Errorf("prev of the deletion of b: got %+v", e)
			}
			if _, _, err := s.EventsSince(mvcc.EventQuery{From: 3}); !errors.Is(err, kv.ErrCompacted) {
				t.Errorf("below: got %v", err)
			}
			if got := s.Size().Versions; got != 3 {
				t.Errorf("got %d versions, want 3", got)
			}
			if err := compact(t, s, 6); err != nil {
				t.Fatal(err)
			}
			settle(t, s)
			if got := s.Size(); got.Versions != 1 || got.Keys != 0 {
				t.Errorf("got %+v, want the tombstone of b alone", got)
			}
		})
	}
}

// A key with very many versions goes by one range deletion, and the sizes still add up.
func TestStore_CompactStep_manyVersions(t *testing.T) {
	if testing.Short() {
		t.Skip("its calls come one after the other, and take long under the race detector")
	}
	for _, o := range openers {
		t.Run(o.name, func(t *testing.T) {
			s := newStore(t, o)
			for i := range 9000 {
				put(t, s, fmt.Sprint("key", i%2), fmt.Sprint(i), 0)
			}
			put(t, s, "key", "below the others", 0)
			put(t, s, "key2", "above", 0)
			if err := compact(t, s, s.Revision()-2); err != nil {
				t.Fatal(err)
			}
			settle(t, s)
			got, _, err := s.Range(&kv.RangeOp{Key: []byte{0}, End: []byte{0}})
			if err != nil || got.Count != 4 || string(got.KVs[1].Value) != "8998" {
				t.Errorf("got %s, %v", show(got), err)
			}
			size := s.Size()
			if size.Versions != 4 || size.LogicalBytes <= 0 || size.LogicalBytes > 400 {
				t.Errorf("got %+v", size)
			}
		})
	}
}

// Two members that compact and flush at different times agree on HashKV; a difference of one value shows.
func TestStore_HashKV_agrees(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			var stores [3]*mvcc.Store
			for i := range stores {
				stores[i] = newStore(t, openers[i%2])
			}
			r := rand.New(rand.NewPCG(seed, 9))
			for i := range 300 {
				key, value, deletes := fmt.Sprint("k", r.IntN(20)), fmt.Sprint(i), r.IntN(4) == 0
				at := kv.Revision(0)
				if r.IntN(40) == 0 {
					at = stores[0].CompactRevision() + 1 + kv.Revision(r.Int64N(10))
				}
				for _, s := range stores {
					do(t, s, func(w *mvcc.Writer) {
						if deletes {
							w.DeleteRange([]byte(key), nil, nil)
						} else {
							w.Put([]byte(key), []byte(value), 0)
						}
					})
					if at > 0 && at <= s.Revision() {
						if err := compact(t, s, at); err != nil {
							t.Fatal(err)
						}
					}
				}
				if _, err := stores[r.IntN(2)].CompactStep(3); err != nil {
					t.Fatal(err)
				}
				rev := max(stores[0].CompactRevision(), 1) + kv.Revision(r.Int64N(int64(stores[0].Revision())))
				var want string
				for _, s := range stores {
					hash, compacted, current, err := s.HashKV(rev)
					if got := fmt.Sprint(hash, compacted, current, err); want == "" {
						want = got
					} else if got != want {
						t.Fatalf("hash at %d of %d: got %s, want %s", rev, s.Revision(), got, want)
					}
				}
			}
			before, _, _, err := stores[1].HashKV(0)
			if err != nil {
				t.Fatal(err)
			}
			put(t, stores[0], "last", "same", 0)
			put(t, stores[1], "last", "else", 0)
			a, _, _, errA := stores[0].HashKV(0)
			b, _, _, errB := stores[1].HashKV(0)
			if err := errors.Join(errA, errB); err != nil || a == b || a == before {
				t.Errorf("hashes %x, %x, before %x, %v", a, b, before, err)
			}
		})
	}
}

// Rows of other tables share the batch: readers see them with the commit, and a crash keeps or loses them together with the
// keys.
func TestWriter_Set_sameBatch(t *testing.T) {
	for _, o := range openers {
		t.Run(o.name, func(t *testing.T) {
			s, eng := openStore(t, o, filestest.NewMem(), 0)
			check := func(when string, want map[string]bool) {
				t.Helper()
				for key, want := range want {
					if _, found, err := eng.Get([]byte(key)); found != want || err != nil {
						t.Errorf("%s: %s is there: %v, %v", when, key, found, err)
					}
				}
			}
			w := s.Begin()
			w.Set([]byte("La"), []byte("1"))
			w.Set([]byte("Lb"), []byte("2"))
			w.DeleteRawRange([]byte("L"), []byte("M"))
			w.Set([]byte("Lc"), nil)
			check("before the commit", map[string]bool{"La": false, "Lb": false, "Lc": false})
			if err := w.Commit(); err != nil {
				t.Fatal(err)
			}
			check("after the commit", map[string]bool{"La": false, "Lb": false, "Lc": true})
			w = s.Begin()
			w.DeleteRaw([]byte("Lc"))
			if err := w.Commit(); err != nil {
				t.Fatal(err)
			}
			check("deleted", map[string]bool{"Lc": false})
			if err := eng.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestWriter_BeginCommandAt(t *testing.T) {
	s := newStore(t, openers[1])
	w := s.Begin()
	w.BeginCommandAt(10)
	if w.EndCommand(); w.Revision() != 1 {
		t.Errorf("a command without changes takes no revision: got %d", w.Revision())
	}
	w.BeginCommandAt(10)
	w.Put([]byte("a"), nil, 0)
	w.Put([]byte("b"), nil, 0)
	events := w.EndCommand()
	if len(events) != 2 || events[1].KV.ModRevision != 10 || w.Revision() != 10 {
		t.Errorf("got %+v at %d", events, w.Revision())
	}
	w.BeginCommand()
	w.Put([]byte("a"), nil, 0)
	w.EndCommand()
	if err := w.Commit(); err != nil || s.Revision() != 11 {
		t.Errorf("got %d, %v, want 11", s.Revision(), err)
	}
}

// changesCounter counts the rows of the table of changes that are read.
type changesCounter struct {
	engine.Engine
	rows int
}

type countedIter struct {
	engine.Iterator
	rows *int
}

func (c *changesCounter) NewIter(lower, upper []byte) (engine.Iterator, error) {
	it, err := c.Engine.NewIter(lower, upper)
	if err != nil || len(lower) == 0 || lower[0] != 'r' {
		return it, err
	}
	return &countedIter{it, &c.rows}, nil
}

func (it *countedIter) Next() bool {
	*it.rows++
	return it.Iterator.Next()
}

// Ensure that each change is read about once, however many keys a step may take and however many versions they have.
func TestStore_CompactStep_reads_changes_once(t *testing.T) {
	const keys, versions = 1500, 12
	for _, batch := range []int{1000, 1 << 20} {
		eng, err := engine.OpenMem(engine.MemOptions{FS: filestest.NewMem(), Dir: "store"})
		if err != nil {
			t.Fatal(err)
		}
		counter := &changesCounter{Engine: eng}
		s, err := mvcc.Open(counter, mvcc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range versions {
			do(t, s, func(w *mvcc.Writer) {
				for i := range keys {
					w.Put(fmt.Appendf(nil, "k%d", i), nil, 0)
				}
			})
		}
		do(t, s, func(w *mvcc.Writer) {
			if err := w.Compact(s.Revision()); err != nil {
				t.Error(err)
			}
		})
		for done := false; !done; {
			if done, err = s.CompactStep(batch); err != nil {
				t.Fatal(err)
			}
		}
		if most := keys*versions + keys*versions/5; counter.rows > most {
			t.Errorf("batches of %d: %d rows are read of %d changes", batch, counter.rows, keys*versions)
		}
		if got := s.Size().Versions; got != keys {
			t.Errorf("batches of %d: %d versions are left", batch, got)
		}
	}
}
