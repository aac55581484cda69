package member

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/env"
)

// pulses tell whether the goroutines that everything depends on make progress. A member whose loop, log or state machine
// hangs answers nobody, while its ports still accept connections: only these tell that from a member that is idle.
type pulses struct {
	clock env.Clock
	epoch time.Time // with its monotonic reading, so that the machine's clock may be set

	loop, disk, apply pulse
}

// pulse is one goroutine's: since when it has been at its present piece of work, in nanoseconds after the epoch; zero
// while it has nothing to do.
type pulse struct{ since atomic.Int64 }

func (p *pulses) init(clock env.Clock) { p.clock, p.epoch = clock, clock.Now() }

// begin says that a goroutine begins a piece of work now.
func (p *pulses) begin(of *pulse) { of.since.Store(max(1, int64(p.clock.Now().Sub(p.epoch)))) }

// idle says that it waits for work.
func (*pulses) idle(of *pulse) { of.since.Store(0) }

// stalled names the first goroutine that has been at one piece of work for longer than limit.
func (p *pulses) stalled(limit time.Duration) error {
	now := p.clock.Now().Sub(p.epoch)
	for _, part := range [...]struct {
		name string
		of   *pulse
	}{{"the member's loop", &p.loop}, {"writing the log", &p.disk}, {"applying entries", &p.apply}} {
		since := time.Duration(part.of.since.Load())
		if took := now - since; since != 0 && took > limit {
			return fmt.Errorf("member: %s has made no progress for %v", part.name, took.Truncate(time.Millisecond))
		}
	}
	return nil
}

// statusPatience is how long Status waits for the loop before it answers with what was last known, and maxAsked how many
// may wait for it.
const (
	statusPatience = 2 * time.Second
	maxAsked       = 1024
)

// Stalled tells whether the member's loop, its log or its state machine has been at one piece of work for longer than
// limit, and which. The loop always has work: it ticks. The installation of a snapshot, which may rightly take long, does
// not count. It never waits for any of them.
func (m *Member) Stalled(limit time.Duration) error { return m.pulses.stalled(limit) }
