package node

import (
	"time"

	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ticks counts the ticks that a clock says have passed. They come before whatever else waits: a member that was paused must
// know that time went on, or its leader lease would outlive the promises it rests on. Without such a lease one tick for
// the whole pause is better: what waits may show that nothing has changed meanwhile.
type Ticks struct {
	begun    time.Time
	interval time.Duration
	counted  int64
	most     int64 // at once
}

// NewTicks begins to count at begun. At most so many ticks are due at once.
func NewTicks(begun time.Time, interval time.Duration, most int64) Ticks {
	return Ticks{begun: begun, interval: interval, most: most}
}

// MostTicks is how many ticks a core is told of at once: as many as its leader lease may count.
func MostTicks(o *raft.Options) int64 {
	if o.LeaderLease {
		return int64(4 * o.ElectionTicks)
	}
	return 1
}

// Due returns the ticks that have passed since it was asked last, as inputs for the core; nil if there are none.
func (t *Ticks) Due(now time.Time) []raft.Input {
	passed := int64(now.Sub(t.begun) / t.interval)
	n := min(passed-t.counted, t.most)
	if n <= 0 {
		return nil
	}
	t.counted = passed
	inputs := make([]raft.Input, n)
	for i := range inputs {
		inputs[i] = raft.Tick{}
	}
	return inputs
}
