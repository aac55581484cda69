package offers

import (
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that after a clock was put back what its new time is not far ahead of still waits, and the rest is taken at once, in the
// order of the stamps.
func TestQueue_Take_clockPutBack(t *testing.T) {
	var q Queue
	now := time.Unix(1_000_000, 0)
	put := func(term consensus.Term, after time.Duration) {
		q.Put(consensus.Message{Kind: consensus.MsgFastPropose, Term: term, Due: uint64(now.Add(after).UnixNano())})
	}
	take := func(at time.Duration) (terms []consensus.Term) {
		for _, m := range q.Take(nil, now.Add(at)) {
			terms = append(terms, m.Term)
		}
		return terms
	}
	put(1, 100*time.Millisecond)
	put(2, 200*time.Millisecond)
	put(3, 150*time.Millisecond)
	if got := take(0); len(got) != 0 {
		t.Fatalf("took %v before anything was due", got)
	}
	const back = -100 * time.Millisecond // 2 is 300 ms ahead then, the others wait
	if got := take(back); !slices.Equal(got, []consensus.Term{2}) {
		t.Errorf("the clock was put back: took %v, want 2", got)
	}
	if got := take(160 * time.Millisecond); !slices.Equal(got, []consensus.Term{1, 3}) {
		t.Errorf("took %v, want 1 and 3", got)
	}
}
