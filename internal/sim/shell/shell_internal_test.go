package shell

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/kernel"
	"github.com/quorate/quorate/internal/sim/tally"
)

// newLife returns a life in a world of its own, without faults.
func newLife(schedule *kernel.Schedule) *Life {
	return &Life{
		ID: 1, Pace: &Pace{Tick: 10 * time.Millisecond}, Rng: rand.New(rand.NewPCG(1, 1)), Counts: &tally.Counts{},
		Runs: func() bool { return true }, Serves: func() bool { return true },
		After: schedule.After,
		Clock: func() time.Time { return time.Unix(0, 0).Add(schedule.Now()) },
	}
}

// Ensure that a process that is woken twice steps once, and one that has ended does not step.
func TestLoop_wake(t *testing.T) {
	var schedule kernel.Schedule
	life := newLife(&schedule)
	steps := 0
	life.After = func(time.Duration, func()) { steps++ }
	l := loop{Life: life}
	l.wake(0)
	l.wake(0)
	if steps != 1 {
		t.Errorf("%d steps are due", steps)
	}
	ended := loop{Life: life}
	life.Runs = func() bool { return false }
	if ended.wake(0); steps != 1 {
		t.Error("it steps after its end")
	}
}

// Ensure that a timer fires once, and not after it was stopped.
func TestClock_AfterFunc(t *testing.T) {
	var schedule kernel.Schedule
	life := newLife(&schedule)
	c := clock{life, life.Clock}
	fired := 0
	first := c.AfterFunc(time.Second, func() { fired++ })
	second := c.AfterFunc(time.Second, func() { fired++ })
	if !second.Stop() || second.Stop() {
		t.Error("a timer that waits is stopped once")
	}
	for do := schedule.Next(time.Minute); do != nil; do = schedule.Next(time.Minute) {
		do()
	}
	if fired != 1 || first.Stop() {
		t.Errorf("%d timers fired", fired)
	}
}

// Ensure that a client learns that a result is gone for good, and gets every other result.
func TestCut(t *testing.T) {
	if _, err := Cut(kv.Result{Left: &kv.Left{}}, nil); !errors.Is(err, kv.ErrResultGone) {
		t.Errorf("an incomplete result: %v", err)
	}
	if r, err := Cut(kv.Result{Revision: 7}, nil); r.Revision != 7 || err != nil {
		t.Errorf("a whole one: %v, %v", r, err)
	}
	if _, err := Cut(kv.Result{}, kv.ErrJobConflict); !errors.Is(err, kv.ErrJobConflict) {
		t.Errorf("an error: %v", err)
	}
}
