package shell

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/sim/actions"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/sim/tally"
)

// Pace is how long operations take, and how often upkeep happens.
type Pace struct {
	Tick  time.Duration
	Loop  time.Duration // from an input to the step that takes it
	Disk  time.Duration // mean of a write with its sync
	Apply time.Duration // mean of an apply
	Flush time.Duration
	Keep  uint64 // entries that stay in the log behind a flush
}

// Life is one run of a process on a simulated machine: the ports of its parts to the machine.
type Life struct {
	ID      consensus.MemberID
	Pace    *Pace
	Rng     *rand.Rand
	Disk    *disk.FS
	Suite   *check.Suite
	Counts  *tally.Counts
	Actions *actions.Member
	Period  time.Duration // of a tick, as long as it takes by this machine's clock

	Serves func() bool                                  // it answers clients
	Runs   func() bool                                  // it has not ended
	After  func(d time.Duration, f func())              // schedules f, unless the life ends before
	Now    func() time.Duration                         // virtual
	Clock  func() time.Time                             // the machine's clock
	Until  func(due time.Time) time.Duration            // how long in virtual time until the clock shows a time
	Slow   func() time.Duration                         // how much longer a write may take now
	Hangs  func() bool                                  // the store applies nothing now
	Send   func(messages []consensus.Message)           // to others
	Fail   func(err error)                              // ends the life because of an operating error
	Ping   func(to consensus.MemberID, answered func()) // to another member and back, or lost
	Note   func(what diary.Kind, a, b, c uint64, text func() string)
}

// outgrown reports whether err is that of a removed member of an earlier build that still gets entries: it need not know the
// level of the others.
func (l *Life) outgrown(err error) bool {
	_, member := l.Suite.CommittedConfig().Member(l.ID)
	return !member && errors.Is(err, apply.ErrNewer)
}

// blames reports whether the disk is the cause of errors.
func (l *Life) blames() bool { return l.Disk.Full || l.Disk.Broken }

var discard = slog.New(slog.DiscardHandler)

// clock is the machine's clock as an env.Clock.
type clock struct {
	*Life
	now func() time.Time
}

// Now implements env.Clock.
func (c clock) Now() time.Time { return c.now() }

// AfterFunc implements env.Clock.
func (c clock) AfterFunc(d time.Duration, f func()) env.Timer {
	t := &pending{waits: true}
	c.After(d, func() {
		if t.Stop() {
			f()
		}
	})
	return t
}

// pending is an event that may be cancelled.
type pending struct{ waits bool }

// Stop implements env.Timer.
func (t *pending) Stop() bool {
	waited := t.waits
	t.waits = false
	return waited
}
