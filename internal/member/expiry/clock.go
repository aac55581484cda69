package expiry

import (
	"sync"
	"time"

	"github.com/quorate/quorate/internal/base/env"
)

// clock is what deadlines of leases go by. It runs as the member's clock does while renewals can be served, and stands still
// while they cannot: a client that asks again and again to renew its lease must not lose it because the store of this member
// hangs, or because its process stood still.
//
// It never runs faster than the member's clock, and never back: a lease may live longer by it, never shorter.
type clock struct {
	clock env.Clock

	mu     sync.Mutex
	stood  time.Duration // for how long it has stood still in all
	served time.Time     // when renewals could be served last; zero: it always runs
	runsOn bool          // a negative control: it does not stand still
}

// ahead is how far the clock runs without word that renewals can be served.
const ahead = time.Second

// now returns the time of this clock.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	return now.Add(-c.stood - c.stands(now))
}

// stands is for how long the clock has stood still since renewals could be served.
func (c *clock) stands(now time.Time) time.Duration {
	if c.served.IsZero() || c.runsOn {
		return 0
	}
	return max(0, now.Sub(c.served)-ahead)
}

// serves notes that renewals can be served now, or that there are no leases or no deadlines here.
func (c *clock) serves() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	c.stood += c.stands(now)
	c.served = now
}
