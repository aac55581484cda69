package env

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// Clock tells the time. Now is monotonic where the platform gives that.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in its own goroutine (or, simulated, event) after d. Stop keeps it from being called.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending AfterFunc.
type Timer interface{ Stop() bool }

// Transport carries messages between members. Send never blocks and may drop: consensus repeats what matters.
type Transport interface {
	// Send hands messages over; they may be for different members. The slice is the caller's again on return,
	// the messages and what they point to are not.
	Send(messages []consensus.Message)
}

// WallClock is the machine's clock.
type WallClock struct{}

// Now returns the current time with its monotonic reading.
func (WallClock) Now() time.Time { return time.Now() }

// AfterFunc starts a real timer.
func (WallClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
