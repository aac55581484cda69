package applier

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

func TestFitting(t *testing.T) {
	for _, tc := range []struct {
		name    string
		entries int
		payload int
		want    int
	}{
		{name: "few go together", entries: 10, payload: 100, want: 10},
		{name: "many are cut by number", entries: 5000, payload: 100, want: maxEntries},
		{name: "large ones are cut by bytes", entries: 100, payload: 1 << 20, want: 15},
		{name: "one always goes", entries: 2, payload: 2 * maxBytes, want: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			entries := []consensus.Entry{{Index: 1, Payload: make([]byte, tc.payload)}}
			for len(entries) < tc.entries {
				entries = append(entries, entries[0])
			}
			if got := fitting(entries, maxEntries); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
