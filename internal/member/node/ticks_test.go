package node_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/node"
)

// Ensure that a pause is one tick, or as many as a leader lease counts, and that a clock that goes back gives none.
func TestTicks_Due(t *testing.T) {
	begun := time.Unix(1000, 0)
	for _, row := range []struct {
		lease bool
		at    []time.Duration
		want  []int
	}{
		{false, []time.Duration{0, 99, 100, 150, 250, 1000, 1050, 1100}, []int{0, 0, 1, 0, 1, 1, 0, 1}},
		{true, []time.Duration{100, 350, 10_000, 10_100}, []int{1, 2, 40, 1}},
		{true, []time.Duration{500, 300, 599, 600}, []int{5, 0, 0, 1}},
	} {
		most := node.MostTicks(&raft.Options{LeaderLease: row.lease, ElectionTicks: 10})
		ticks := node.NewTicks(begun, 100*time.Millisecond, most)
		for i, at := range row.at {
			if got := len(ticks.Due(begun.Add(at * time.Millisecond))); got != row.want[i] {
				t.Errorf("lease %t, at %d ms: got %d ticks, want %d", row.lease, at, got, row.want[i])
			}
		}
	}
}
