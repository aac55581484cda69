package readindex_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus/readindex"
)

// Ensure that reads leave in the order in which they came, however many wait.
func TestQueue_order(t *testing.T) {
	var q readindex.Queue
	next, want := uint64(0), uint64(0)
	for round := range 3000 {
		for range round % 7 {
			next++
			q.Push(readindex.Pending{ID: next})
		}
		for range min(round%5, len(q.Waiting())) {
			if want++; q.Waiting()[0].ID != want {
				t.Fatalf("got read %d, want %d", q.Waiting()[0].ID, want)
			}
			q.Pop()
		}
	}
	if got := uint64(len(q.Waiting())); got != next-want || got == 0 {
		t.Errorf("%d reads wait, want %d", got, next-want)
	}
	if q.Clear(); len(q.Waiting()) != 0 {
		t.Errorf("%d reads wait after all were dropped", len(q.Waiting()))
	}
}
