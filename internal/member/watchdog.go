package member

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/base/env"
)

// watchdog detects important goroutines that make no progress.
//
// A member whose loop, log writer or state machine hangs answers no request, while its ports still accept connections; from
// outside it looks idle. A goroutine calls begin before each piece of work and idle when it waits for more. stalled names the
// first goroutine whose present piece of work takes too long. It ends nothing: the caller decides what to do.
//
// All methods may be called concurrently. None of them waits.
type watchdog struct {
	clock env.Clock
	begun time.Time // with its monotonic reading, so that the machine's clock may be set
	tasks []*watchedTask
}

// watchedTask is what one goroutine does.
type watchedTask struct {
	dog   *watchdog
	name  string
	since atomic.Int64 // it is at its present piece of work, in nanoseconds after begun; zero: it waits
}

// newWatchdog returns a watchdog without goroutines to watch.
func newWatchdog(clock env.Clock) *watchdog { return &watchdog{clock: clock, begun: clock.Now()} }

// watch adds a goroutine. All must be added before the first of them begins.
func (w *watchdog) watch(name string) *watchedTask {
	t := &watchedTask{dog: w, name: name}
	w.tasks = append(w.tasks, t)
	return t
}

// begin says that the goroutine begins a piece of work now.
func (t *watchedTask) begin() { t.since.Store(max(1, int64(t.dog.clock.Now().Sub(t.dog.begun)))) }

// idle says that it waits for work.
func (t *watchedTask) idle() { t.since.Store(0) }

// stalled names the first goroutine that has been at one piece of work for longer than limit.
func (w *watchdog) stalled(limit time.Duration) error {
	now := w.clock.Now().Sub(w.begun)
	for _, t := range w.tasks {
		since := time.Duration(t.since.Load())
		if took := now - since; since != 0 && took > limit {
			return fmt.Errorf("member: %s has made no progress for %v", t.name, took.Truncate(time.Millisecond))
		}
	}
	return nil
}

// watched are the watchdog's tasks: the loop, the log and the state machine.
type watched struct{ loop, disk, apply *watchedTask }

func (w *watched) init(dog *watchdog) {
	w.loop, w.disk, w.apply = dog.watch("the member's loop"), dog.watch("writing the log"), dog.watch("applying entries")
}

// applies notes whether the apply lane is busy.
func (w *watched) applies(busy bool) {
	if busy {
		w.apply.begin()
	} else {
		w.apply.idle()
	}
}
