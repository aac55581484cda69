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
// It never runs faster than the member's clock: a lease may live longer by it, never shorter. It runs ahead of the last word
// that renewals can be served. When the next word comes after it has stood still, it goes on from that last word: it goes back
// then, so that a renewal that waited is in time whenever it was asked for.
type clock struct {
	clock env.Clock

	mu      sync.Mutex
	stood   time.Duration // for how long it has stood still in all
	served  time.Time     // when renewals could be served last; zero: it always runs
	resumed time.Time     // when it went on last after it had stood still
	runsOn  bool          // a negative control: it does not stand still
}

const (
	// ahead is how far the clock runs without word that renewals can be served.
	ahead = time.Second
	// fresh is how old that word may be for leases to end without another one.
	fresh = 100 * time.Millisecond
	// grace is how long nothing ends after the clock has stood still.
	grace = 500 * time.Millisecond
)

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

// serves notes that renewals could be served at a time of the member's clock, or that there were no leases or no deadlines
// here.
func (c *clock) serves(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.Before(c.served) {
		return
	}
	if c.stands(at) > 0 {
		c.stood += at.Sub(c.served)
		c.resumed = at
	}
	c.served = at
}

// mayEnd reports whether leases may end now: renewals could be served a moment ago, and those that waited while the clock stood
// still have had time to be served.
func (c *clock) mayEnd() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	return c.stands(now) == 0 && (c.resumed.IsZero() || now.Sub(c.resumed) >= grace)
}

// isFresh reports whether renewals could be served just now.
func (c *clock) isFresh() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.served.IsZero() && c.clock.Now().Sub(c.served) < fresh
}

// standing returns for how long the clock has stood still: since it stands now, and in all.
func (c *clock) standing() (now, all time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now = c.stands(c.clock.Now())
	return now, c.stood + now
}
