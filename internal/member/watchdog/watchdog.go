package watchdog

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/base/env"
)

// Watchdog watches over some goroutines.
type Watchdog struct {
	clock env.Clock
	begun time.Time // with its monotonic reading, so that the machine's clock may be set
	tasks []*Task
}

// Task is what one goroutine does.
type Task struct {
	dog   *Watchdog
	name  string
	since atomic.Int64 // it is at its present piece of work, in nanoseconds after begun; zero: it waits
}

// New returns a Watchdog without goroutines to watch.
func New(clock env.Clock) *Watchdog { return &Watchdog{clock: clock, begun: clock.Now()} }

// Watch adds a goroutine. All must be added before the first of them begins.
func (w *Watchdog) Watch(name string) *Task {
	t := &Task{dog: w, name: name}
	w.tasks = append(w.tasks, t)
	return t
}

// Begin says that the goroutine begins a piece of work now.
func (t *Task) Begin() { t.since.Store(max(1, int64(t.dog.clock.Now().Sub(t.dog.begun)))) }

// Idle says that it waits for work.
func (t *Task) Idle() { t.since.Store(0) }

// Stalled names the first goroutine that has been at one piece of work for longer than limit.
func (w *Watchdog) Stalled(limit time.Duration) error {
	now := w.clock.Now().Sub(w.begun)
	for _, t := range w.tasks {
		since := time.Duration(t.since.Load())
		if took := now - since; since != 0 && took > limit {
			return fmt.Errorf("member: %s has made no progress for %v", t.name, took.Truncate(time.Millisecond))
		}
	}
	return nil
}
