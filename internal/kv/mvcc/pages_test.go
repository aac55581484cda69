package mvcc_test

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// versionsCounter counts the moves over the table of versions.
type versionsCounter struct {
	engine.Engine
	moves int
}

type movesIter struct {
	engine.Iterator
	moves *int
}

func (c *versionsCounter) NewIter(lower, upper []byte) (engine.Iterator, error) {
	it, err := c.Engine.NewIter(lower, upper)
	return &movesIter{it, &c.moves}, err
}

func (it *movesIter) NextPrefix() bool {
	*it.moves++
	return it.Iterator.NextPrefix()
}

// Each page of a long range has the number of keys behind it, at the revision of the first; only the first page counts them.
func TestStore_Range_pagesCountOnce(t *testing.T) {
	const keys, page = 1000, 10
	mem, err := engine.OpenMem(engine.MemOptions{FS: filestest.NewMem(), Dir: "store"})
	if err != nil {
		t.Fatal(err)
	}
	eng := &versionsCounter{Engine: mem}
	s, err := mvcc.Open(eng, mvcc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	do(t, s, func(w *mvcc.Writer) {
		for i := range keys {
			w.Put(fmt.Appendf(nil, "k%04d", i), nil, 0)
		}
	})
	rev := s.Revision()
	op := &kv.RangeOp{Key: []byte("k"), End: []byte("l"), Limit: page}
	for left := int64(keys); left > 0; left -= page {
		got, _, err := s.Range(op)
		if err != nil || got.Count != left || len(got.KVs) != page || got.More != (left > page) {
			t.Fatalf("with %d keys left: got %d of %d, more %v, %v", left, len(got.KVs), got.Count, got.More, err)
		}
		op = &kv.RangeOp{
			Key: append(got.KVs[page-1].Key, 0), End: op.End, Limit: page, Revision: rev,
		}
		put(t, s, fmt.Sprint("k0500", left), "new", 0) // not at rev
	}
	if most := 4 * keys; eng.moves > most {
		t.Errorf("%d moves for %d keys in pages of %d, want at most %d", eng.moves, keys, page, most)
	}
	// At another revision, or for another end, the count is another.
	for _, c := range []struct {
		op   kv.RangeOp
		want int64
	}{
		{kv.RangeOp{Key: []byte("k0499\x00"), End: []byte("l"), Limit: page, Revision: rev}, 500},
		{kv.RangeOp{Key: []byte("k0499\x00"), End: []byte("l"), Limit: page}, 600},
		{kv.RangeOp{Key: []byte("k0499\x00"), End: []byte("k0600"), Limit: page, Revision: rev}, 100},
		{kv.RangeOp{Key: []byte("k0499\x00"), End: []byte("l"), Limit: page, Revision: rev, MinMod: rev + 1}, 500},
	} {
		if got, _, err := s.Range(&c.op); err != nil || got.Count != c.want {
			t.Errorf("%s to %s at %d: got %d, %v, want %d", c.op.Key, c.op.End, c.op.Revision, got.Count, err, c.want)
		}
	}
}
