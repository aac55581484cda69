package feed

import (
	"math/rand/v2"
	"slices"
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
		f.keep(batch(i, i+4), 9)
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

// Ensure that what follows an entry, and the sum of one, are found without a look at most of 250,000 batches: the applier waits
// meanwhile.
func TestFeed_looks(t *testing.T) {
	const n = 250_000
	f := New(1 << 30)
	for i := consensus.Index(1); i <= n; i++ {
		f.keep(batch(i, i), uint64(i)) // under a policy of its own: they stay apart
	}
	f.follows, f.end = true, backup.Point{Index: n, Sum: n}
	if len(f.batches) != n {
		t.Fatalf("%d batches", len(f.batches))
	}
	for _, index := range []consensus.Index{0, 1, 77_777, n / 2, n - 1, n} {
		// All batches that a search by halves for the entry, or the one after it, does not need are not there.
		poisoned := &Feed{follows: true, end: f.end, batches: make([]fed, n)}
		for _, want := range []int{int(index) - 1, int(index)} {
			for low, high := 0, n; low < high; {
				middle := (low + high) / 2
				poisoned.batches[middle] = f.batches[middle]
				if middle < want {
					low = middle + 1
				} else {
					high = middle
				}
			}
		}
		end := min(n, int(index)+afterBatches)
		copy(poisoned.batches[index:end], f.batches[index:end])
		got := poisoned.After(index, n)
		if len(got) != end-int(index) || len(got) > 0 && got[0].Items[0].Entry.Index != index+1 {
			t.Errorf("after %d: %d batches", index, len(got))
		}
		if sum, known := poisoned.Sum(index); !known || sum != uint64(index) {
			t.Errorf("the sum of entry %d: %d, %t", index, sum, known)
		}
	}
	if got := f.After(1<<64-1, n); len(got) > 0 {
		t.Errorf("after the last of all: %+v", got)
	}
}

// Ensure that small batches are kept as few, and that readers of what was kept before see no change.
func TestFeed_merges(t *testing.T) {
	f := New(64 << 20)
	random := rand.New(rand.NewPCG(1, 2))
	var given []*ship.Batch
	var next consensus.Index
	for i := consensus.Index(1); i <= 250_000; {
		b := batch(i, i+consensus.Index(random.IntN(3)))
		b.Own = random.IntN(len(b.Items) + 1)
		f.keep(b, 9)
		i += consensus.Index(len(b.Items))
		if random.IntN(100) == 0 {
			for got := f.After(next, 9); len(got) > 0; got = f.After(next, 9) {
				given = append(given, got...)
				next = got[len(got)-1].Items[len(got[len(got)-1].Items)-1].Entry.Index
			}
		}
		if last := f.batches[len(f.batches)-1].Batch; last.Own < b.Own || b.Own < len(b.Items) && last.Own != b.Own {
			t.Fatalf("%d of the last items are the backup's own, and %d of a batch", last.Own, b.Own)
		}
	}
	if len(f.batches) > 500 {
		t.Errorf("%d batches of %d bytes", len(f.batches), f.bytes)
	}
	if bytes := bytesOf(given[0]); next < 240_000 || bytes > mergeBytes {
		t.Errorf("up to %d; the first has %d bytes", next, bytes)
	}
	follows := consensus.Index(0)
	for _, b := range given {
		if b.Before != uint64(follows) {
			t.Fatalf("after entry %d: the sum before is %d", follows, b.Before)
		}
		for i := range b.Items {
			if follows++; b.Items[i].Entry.Index != follows {
				t.Fatalf("entry %d comes after %d", b.Items[i].Entry.Index, follows-1)
			}
		}
	}
	if got := f.After(0, 9); bytesSum(got) > afterBytes+mergeBytes || bytesSum(got) < afterBytes {
		t.Errorf("%d bytes at once", bytesSum(got))
	}
}

func bytesSum(batches []*ship.Batch) (bytes int64) {
	for _, b := range batches {
		bytes += bytesOf(b)
	}
	return bytes
}

// Ensure that a reader does not race with the applier.
func TestFeed_concurrent(t *testing.T) {
	f := New(1 << 20)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := consensus.Index(1); i <= 20_000; i++ {
			f.mu.Lock()
			f.keep(batch(i, i), 9)
			f.mu.Unlock()
		}
	}()
	for next, over := consensus.Index(0), false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		for _, b := range f.After(next, 9) {
			if !slices.IsSortedFunc(b.Items, func(a, b backup.Item) int { return int(a.Entry.Index) - int(b.Entry.Index) }) {
				t.Fatal("items are not in order")
			}
			next = b.Items[len(b.Items)-1].Entry.Index
		}
		if over && next != 20_000 {
			t.Fatalf("the last is %d", next)
		}
	}
}
