//go:build linux

package process_test

import (
	"time"

	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/test/offclock"
)

// clockAilments are those of which the clock of a program is off.
var clockAilments = []ailment{
	{name: "a clock is ten seconds ahead", dress: func(c *cluster) { c.ownClock(10 * time.Second) }, code: doctor.ClockOff, status: 1,
		words: "the clock of m3 is "},
	{name: "a clock is an hour late", dress: func(c *cluster) { c.ownClock(-time.Hour) }, code: doctor.ClockOff, status: 1,
		words: "the clock of m3 is 59 minutes behind"},
}

// ownClock gives the last member a clock that is off.
func (c *cluster) ownClock(off time.Duration) {
	clock := &offclock.Clock{}
	clock.Set(off)
	c.nodes[len(c.nodes)-1].begin = c.interposed(clock.Start)
	c.t.Cleanup(func() {
		if err := clock.Err(); err != nil {
			c.t.Error(err)
		}
	})
}
