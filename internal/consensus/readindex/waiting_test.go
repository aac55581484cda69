package readindex_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/readindex"
)

// given returns the ids and indexes of the reads that go at a commit index, where all rounds up to confirmed are.
func given(w *readindex.Waiting, commit consensus.Index, confirmed uint64) (answers []consensus.ReadIndex) {
	w.Answer(commit, func(r *readindex.Pending) bool { return r.Round <= confirmed }, func(r *readindex.Pending) {
		answers = append(answers, consensus.ReadIndex{ID: r.ID, Index: r.Index})
	})
	return answers
}

// Ensure that a read goes once its index has committed, and its round is confirmed if it waits for one, and none before those
// that came earlier.
func TestWaiting_Answer(t *testing.T) {
	var w readindex.Waiting
	w.Add(readindex.Pending{ID: 1, Index: 5, Round: 1}, false)
	w.Add(readindex.Pending{ID: 2, Index: 5, Round: 1}, true)
	w.Add(readindex.Pending{ID: 3, Index: 7, Round: 2}, false)
	if got := given(&w, 4, 9); got != nil || !w.Asks() {
		t.Errorf("got %v before anything has committed", got)
	}
	if got := given(&w, 6, 0); !slices.Equal(got, []consensus.ReadIndex{{ID: 2, Index: 5}}) {
		t.Errorf("got %v before a round is confirmed", got)
	}
	if got := given(&w, 7, 1); !slices.Equal(got, []consensus.ReadIndex{{ID: 1, Index: 5}}) {
		t.Errorf("got %v after the first round", got)
	}
	if got := given(&w, 7, 2); !slices.Equal(got, []consensus.ReadIndex{{ID: 3, Index: 7}}) || w.Asks() {
		t.Errorf("got %v after the second round", got)
	}
	if w.Add(readindex.Pending{ID: 4, Index: 7}, true); w.Asks() {
		t.Error("a read that waits for no echo wants a round")
	}
}

// Ensure that an echo lowers the indexes of the reads between two rounds, of one configuration, and none below its floor, nor
// above what it was.
func TestWaiting_Narrow(t *testing.T) {
	now, before := consensus.ConfigID{Index: 3, Term: 1}, consensus.ConfigID{Index: 2, Term: 1}
	for _, sure := range []bool{true, false} {
		var w readindex.Waiting
		for _, r := range []readindex.Pending{
			{ID: 1, Index: 20, Floor: 8, Config: now, Round: 4}, // an earlier round
			{ID: 2, Index: 20, Floor: 8, Config: now, Round: 5},
			{ID: 3, Index: 20, Floor: 12, Config: now, Round: 5},
			{ID: 4, Index: 20, Floor: 8, Config: before, Round: 6},
			{ID: 5, Index: 20, Floor: 8, Round: 6}, // a change was under way
			{ID: 6, Index: 21, Floor: 8, Config: now, Round: 7},
			{ID: 7, Index: 21, Floor: 8, Config: now, Round: 8}, // a later round
		} {
			w.Add(r, sure)
		}
		asked := map[uint64]int{}
		w.Narrow(4, 7, now, func(round uint64) consensus.Index {
			asked[round]++
			return map[uint64]consensus.Index{5: 10, 7: 30}[round]
		})
		var got []consensus.Index
		w.Fail(func(r *readindex.Pending) { got = append(got, r.Index) })
		if want := []consensus.Index{20, 10, 12, 20, 20, 21, 21}; !slices.Equal(got, want) {
			t.Errorf("sure %t: got %d, want %d", sure, got, want)
		}
		if asked[5] != 1 || asked[7] != 1 || len(asked) != 2 {
			t.Errorf("sure %t: the rounds %v were looked at", sure, asked)
		}
		if given(&w, 100, 100) != nil {
			t.Errorf("sure %t: reads are left", sure)
		}
	}
}
