package kernel_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/sim/kernel"
)

// Ensure that a clock shows a time after the wait for it, however wrong the clock is.
func TestClock_Until(t *testing.T) {
	for _, c := range []kernel.Clock{{Rate: 1}, {Rate: 0.98, Offset: -time.Hour}, {Rate: 1.02, Offset: time.Hour}} {
		for _, wait := range []time.Duration{0, time.Millisecond, time.Minute} {
			now := 7 * time.Second
			due := c.At(now).Add(wait)
			if early := due.Sub(c.At(now + c.Until(due, now))); early.Abs() > time.Microsecond {
				t.Errorf("%+v is %v off %v", c, early, due)
			}
		}
	}
}
