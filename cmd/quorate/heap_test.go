package main

import "testing"

func TestGCPercent(t *testing.T) {
	for _, tc := range []struct {
		name string
		live uint64
		want int
	}{
		{"nothing is known yet", 0, 100},
		{"a small heap grows to the floor", 32 << 20, 300},
		{"at the floor", 128 << 20, 30},
		{"a large heap grows in proportion", 1 << 30, 30},
	} {
		if got := gcPercent(tc.live); got < tc.want-1 || got > tc.want {
			t.Errorf("%s: got %d, want %d", tc.name, got, tc.want)
		}
	}
}
