package feed

import (
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
)

func batch(first, last consensus.Index) *ship.Batch {
	b := &ship.Batch{Before: uint64(first - 1)}
	for i := first; i <= last; i++ {
		b.Items = append(b.Items, backup.Item{Entry: consensus.Entry{Index: i, Payload: make([]byte, 20)}, Revision: 1, Sum: uint64(i)})
	}
	return b
}

// Ensure that a feed stays within its bound, forgets the oldest first, gives what follows an entry, also from within a batch, and
// knows sums only of entries after which it lacks none.
func TestFeed_bound(t *testing.T) {
	f := New(2000)
	for i := consensus.Index(1); i < 1000; i += 5 {
		f.keep(fed{batch(i, i+4), 9})
		f.end, f.follows = backup.Point{Index: i + 4, Sum: uint64(i + 4)}, true
		if f.bytes > 2000 {
			t.Fatalf("%d bytes after entry %d", f.bytes, i+4)
		}
	}
	first := f.batches[0].Items[0].Entry.Index
	if len(f.batches) < 2 || first < 900 {
		t.Fatalf("%d batches from %d on", len(f.batches), first)
	}
	got := f.After(first+2, 9)
	if got[0].Items[0].Entry.Index != first+3 || got[0].Before != uint64(first+2) || len(got) != len(f.batches) {
		t.Errorf("within a batch: %+v of %d", got[0], len(got))
	}
	if got := f.After(0, 9); got[0].Items[0].Entry.Index != first {
		t.Errorf("after what is forgotten: from %d on", got[0].Items[0].Entry.Index)
	}
	if got := f.After(1000, 9); len(got) > 0 {
		t.Errorf("after the last one: %+v", got)
	}
	for index, want := range map[consensus.Index]bool{first - 2: false, first - 1: true, first: true, first + 7: true, 1000: true,
		1001: false} {
		if sum, known := f.Sum(index); known != want || known && sum != uint64(index) {
			t.Errorf("the sum of entry %d: %d, %t", index, sum, known)
		}
	}
	if got := f.After(first+2, 8); len(got) > 0 {
		t.Errorf("entries under a later policy are given to be shipped under a former one: %+v", got[0])
	}
	f.forget()
	if _, known := f.Last(); known || f.bytes > 0 {
		t.Error("a store that was replaced is followed")
	}
}
