package member

import "testing"

func TestFitting(t *testing.T) {
	for _, tc := range []struct {
		name    string
		entries int
		payload int
		want    int
	}{
		{name: "few go together", entries: 10, payload: 100, want: 10},
		{name: "many are cut by number", entries: 5000, payload: 100, want: maxApplyEntries},
		{name: "large ones are cut by bytes", entries: 100, payload: 1 << 20, want: 15},
		{name: "one always goes", entries: 2, payload: 2 * maxApplyBytes, want: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			entries := batchOf(1, 1, tc.payload)
			for len(entries) < tc.entries {
				entries = append(entries, entries[0])
			}
			if got := fitting(entries); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
