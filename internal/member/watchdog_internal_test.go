package member

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/env"
)

// handClock is moved by hand.
type handClock struct {
	env.WallClock
	now time.Time
}

func (c *handClock) Now() time.Time { return c.now }

// Ensure that only a goroutine that is at one piece of work for too long is named, and that the next piece counts anew.
func TestWatchdog_stalled(t *testing.T) {
	clock := &handClock{now: time.Unix(1, 0)}
	dog := newWatchdog(clock)
	waiting, busy := dog.watch("waiting"), dog.watch("writing the log")
	clock.now = clock.now.Add(time.Second)
	waiting.begin()
	waiting.idle()
	busy.begin()
	clock.now = clock.now.Add(time.Minute)
	if err := dog.stalled(time.Minute); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	clock.now = clock.now.Add(time.Second)
	want := "member: writing the log has made no progress for 1m1s"
	if err := dog.stalled(time.Minute); err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
	busy.begin()
	if err := dog.stalled(time.Minute); err != nil {
		t.Errorf("at its next work: %v", err)
	}
}
