package client

import (
	"testing"
	"time"
)

// TestPace_look stamps when offers fail, rests when stamps do not help, and looks again.
func TestPace_look(t *testing.T) {
	var p pace
	now, tried, won := time.Unix(1000, 0), uint64(0), uint64(0)
	p.look(now, 0, 0)
	step := func(after time.Duration, offers, wins uint64, want paceMode) {
		t.Helper()
		now, tried, won = now.Add(after), tried+offers, won+wins
		if got := p.look(now, tried, won); got != want {
			t.Errorf("after %v and %d of %d: mode %d, want %d", after, wins, offers, got, want)
		}
	}
	step(paceLook, 100, 95, paceAtOnce)
	step(paceLook, paceFewest-1, 0, paceAtOnce) // too few to tell
	step(paceLook/2, 100, 50, paceStamped)
	step(paceLook, 100, 10, paceStamped) // offers from before
	step(paceLook, 100, 80, paceStamped)
	step(paceStamps, 100, 80, paceAtOnce)
	step(paceLook, 100, 20, paceStamped)
	step(2*paceLook, 100, 20, paceRest)
	step(paceRests/2, 0, 0, paceRest)
	step(paceRests, 0, 0, paceStamped)
}

// TestFleet_due stamps for the farthest of those that are needed, later each time.
func TestFleet_due(t *testing.T) {
	f := &fleet{lanes: map[uint64]*lane{}}
	for id, trip := range map[uint64]time.Duration{1: 20, 2: 10, 3: 60, 4: 40, 5: 200} {
		l := &lane{stream: &link{}}
		l.stream.distance.Store(int64(trip * time.Millisecond))
		f.lanes[id] = l
	}
	now := time.Unix(1000, 0)
	first := f.due(now, &fiveVoters, []uint64{2, 3, 4, 5})
	if ahead := time.Unix(0, int64(first)).Sub(now); ahead < 30*time.Millisecond || ahead > 40*time.Millisecond {
		t.Errorf("stamped %v ahead", ahead)
	}
	if second := f.due(now, &fiveVoters, []uint64{2, 3, 4, 5}); second <= first {
		t.Errorf("%d after %d", second, first)
	}
}
