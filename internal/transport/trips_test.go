package transport

import (
	"testing"
	"time"
)

func TestTripCounter_add(t *testing.T) {
	var c tripCounter
	const total = 100*time.Microsecond + 150*time.Microsecond + 3*time.Second
	for _, took := range []time.Duration{100 * time.Microsecond, 150 * time.Microsecond, 3 * time.Second} {
		c.add(took)
	}
	got := c.trips()
	last := len(TripBounds) - 1
	if got.Count != 3 || got.Sum != total || got.Within[0] != 1 || got.Within[1] != 2 || got.Within[last] != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestLane_measure_countsTrips(t *testing.T) {
	p := &peer{}
	l := &peerStream{p: p, number: 7, pinged: time.Now()}
	l.measure(6) // an answer to an older ping
	l.measure(7)
	l.measure(7) // it came twice
	if got := p.trips.trips(); got.Count != 1 || got.Sum <= 0 {
		t.Errorf("got %+v, want one round trip", got)
	}
}
