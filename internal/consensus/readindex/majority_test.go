package readindex_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/readindex"
)

// Ensure that an index is given once a majority has answered the question, or a later one, under the configuration.
func TestMajority_Index(t *testing.T) {
	voters := []consensus.MemberID{1, 2, 3, 4, 5}
	config := consensus.ConfigID{Index: 3, Term: 1}
	answer := func(voter consensus.MemberID, query uint64, last consensus.Index) readindex.Answer {
		return readindex.Answer{Voter: voter, Query: query, Last: last, Config: config}
	}
	unlogged, elsewhere := answer(3, 8, 20), answer(3, 8, 20)
	unlogged.Unlogged, elsewhere.Config = true, consensus.ConfigID{Index: 9, Term: 1}
	for _, x := range []struct {
		name    string
		answers []readindex.Answer
		want    consensus.Index // zero: none
	}{
		{"two others are a majority with the reader", []readindex.Answer{answer(2, 8, 11), answer(3, 8, 20)}, 20},
		{"of three the two shortest logs are enough",
			[]readindex.Answer{answer(2, 8, 11), answer(3, 8, 20), answer(4, 8, 12)}, 12},
		{"the reader's own log counts", []readindex.Answer{answer(2, 8, 4), answer(3, 8, 5)}, 10},
		{"a later question answers it", []readindex.Answer{answer(2, 9, 11), answer(3, 8, 20)}, 20},
		{"one is too few", []readindex.Answer{answer(2, 8, 11)}, 0},
		{"one voter counts once", []readindex.Answer{answer(2, 8, 11), answer(2, 9, 20)}, 0},
		{"an answer to an earlier question", []readindex.Answer{answer(2, 8, 11), answer(3, 7, 20)}, 0},
		{"an answer to a question not asked", []readindex.Answer{answer(2, 8, 11), answer(3, 10, 20)}, 0},
		{"a voter that knows more than its log", []readindex.Answer{answer(2, 8, 11), unlogged}, 0},
		{"a voter under another configuration", []readindex.Answer{answer(2, 8, 11), elsewhere}, 0},
		{"no voter", []readindex.Answer{answer(2, 8, 11), answer(9, 8, 20)}, 0},
	} {
		var q readindex.Majority
		q.Ask(9, voters)
		for _, a := range x.answers {
			q.Note(a)
		}
		got, ok := q.Index(8, voters, config, 10)
		if ok != (x.want > 0) || ok && got != x.want {
			t.Errorf("%s: got %d %t, want %d", x.name, got, ok, x.want)
		}
	}
}

// Ensure that members that vote no more are forgotten with the next question.
func TestMajority_Ask_forgets(t *testing.T) {
	var q readindex.Majority
	q.Ask(1, []consensus.MemberID{1, 2, 3})
	q.Note(readindex.Answer{Voter: 3, Query: 1})
	if q.Ask(2, []consensus.MemberID{1, 2}); q.Answered() {
		t.Error("the answer of a former voter is kept")
	}
}
