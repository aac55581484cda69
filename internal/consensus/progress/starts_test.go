package progress_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus/progress"
)

// Ensure that an echo counts from the latest round that it answers, and that old rounds are forgotten.
func TestStarts_Of(t *testing.T) {
	var s progress.Starts
	for round := range uint64(5) {
		s.Add(2*round+2, 10*round, 25) // rounds 2, 4, 6, 8, 10 at 0, 10, 20, 30, 40
	}
	for _, x := range []struct {
		round, at uint64
		known     bool
	}{{10, 40, true}, {99, 40, true}, {9, 30, true}, {6, 20, true}, {5, 0, false}, {2, 0, false}} {
		if at, known := s.Of(x.round); at != x.at || known != x.known {
			t.Errorf("echo of round %d: got %d %t, want %d %t", x.round, at, known, x.at, x.known)
		}
	}
	for round := range uint64(3000) {
		s.Add(100+round, 50, 25)
	}
	if _, known := s.Of(100); known {
		t.Error("a round is remembered beyond the bound")
	}
	if s.Clear(); func() bool { _, known := s.Of(9999); return known }() {
		t.Error("a round is known after all were forgotten")
	}
}

// Ensure that what a member reported does not fall, and that members are kept apart.
func TestMatches_Note(t *testing.T) {
	var m progress.Matches
	m.Note(1, 5)
	m.Note(2, 9)
	m.Note(1, 3)
	if m.Of(1) != 5 || m.Of(2) != 9 || m.Of(3) != 0 || m.Len() != 2 {
		t.Errorf("got %d, %d and %d of %d members", m.Of(1), m.Of(2), m.Of(3), m.Len())
	}
	if m.Clear(); m.Len() != 0 || m.Of(2) != 0 {
		t.Error("something is known after all was forgotten")
	}
}
