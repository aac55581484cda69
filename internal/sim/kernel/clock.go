package kernel

import "time"

// Clock is the clock of one machine: it may be wrong, and run fast or slow, but it does not jump.
type Clock struct {
	Rate   float64
	Offset time.Duration
}

// At returns the time of the clock at a virtual time.
func (c *Clock) At(now time.Duration) time.Time {
	return time.Unix(1_000_000_000, 0).Add(c.Offset + time.Duration(float64(now)*c.Rate))
}

// Until returns how long in virtual time it takes until the clock shows a time.
func (c *Clock) Until(due time.Time, now time.Duration) time.Duration {
	return time.Duration(float64(due.Sub(c.At(now))) / c.Rate)
}
