package wal_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/wal"
)

func TestRecovered_Holds(t *testing.T) {
	log := wal.Recovered{Base: consensus.SnapshotMeta{Position: consensus.Position{Index: 3, Term: 2}}, Entries: []consensus.Entry{
		{Index: 4, Term: 2}, {Index: 5, Term: 4},
	}}
	for _, tc := range []struct {
		name string
		mark consensus.Position
		want bool
	}{
		{"an entry", consensus.Position{Index: 5, Term: 4}, true},
		{"its index in another term", consensus.Position{Index: 5, Term: 3}, false},
		{"beyond the end", consensus.Position{Index: 6, Term: 4}, false},
		{"where it begins", consensus.Position{Index: 3, Term: 2}, true},
		{"where it begins, in another term", consensus.Position{Index: 3, Term: 1}, false},
		{"before it begins", consensus.Position{Index: 2, Term: 2}, false},
	} {
		if got := log.Holds(tc.mark); got != tc.want {
			t.Errorf("%s: got %t", tc.name, got)
		}
	}
	if got := log.Last(); got != (consensus.Position{Index: 5, Term: 4}) {
		t.Errorf("last: got %v", got)
	}
	log.Entries = nil
	if got := log.Last(); got != log.Base.Position {
		t.Errorf("last without entries: got %v", got)
	}
}
