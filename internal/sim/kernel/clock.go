package kernel

import "time"

// Clock is the clock of one machine: it may be wrong, and run fast or slow, but it does not jump.
type Clock struct {
	Rate   float64
	Offset time.Duration
}

// At returns what the clock shows at a virtual time.
func (c *Clock) At(now time.Duration) time.Time {
	return time.Unix(1_000_000_000, 0).Add(c.Offset + time.Duration(float64(now)*c.Rate))
}

// Until returns for how long of virtual time the clock does not show a time yet.
func (c *Clock) Until(due time.Time, now time.Duration) time.Duration {
	return time.Duration(float64(due.Sub(c.At(now))) / c.Rate)
}
