package memory

import (
	"testing"
	"time"
)

// Ensure that the heap grows between two collections by what a second's load allocates, within bounds.
func TestGrowth(t *testing.T) {
	const mib = 1 << 20
	for _, tc := range []struct {
		name            string
		live, allocated uint64
		took            time.Duration
		want            uint64
	}{
		{"a member that does nothing", 50 * mib, 1 * mib, time.Minute, leastGrowth},
		{"a small load", 50 * mib, 60 * mib, 3 * time.Second, 10 * mib},
		{"a load that begins", 50 * mib, leastGrowth, 50 * time.Millisecond, 78 * mib},
		{"a full load", 50 * mib, 96 * mib, time.Second / 4, 78 * mib},
		{"a full load beside more that lives", 90 * mib, 96 * mib, time.Second / 4, 38 * mib},
		{"a full load on a large heap", 1000 * mib, 900 * mib, time.Second / 4, 300 * mib},
		{"no time", 50 * mib, 1, 0, 78 * mib},
	} {
		if got := growth(tc.live, tc.allocated, tc.took); got/mib != tc.want/mib {
			t.Errorf("%s: got %d MiB, want %d", tc.name, got/mib, tc.want/mib)
		}
	}
}

func TestGrowthPercent(t *testing.T) {
	for _, tc := range []struct {
		name    string
		scanned uint64
		growth  uint64
		want    int
	}{
		{"nothing was collected yet", 0, leastGrowth, 100},
		{"a part of what lives", 100 << 20, 8 << 20, 8},
		{"more than lives", 10 << 20, 40 << 20, 400},
		{"next to nothing", 64 << 30, 8 << 20, 1},
	} {
		if got := growthPercent(heap{scanned: tc.scanned}, tc.growth); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.name, got, tc.want)
		}
	}
}
