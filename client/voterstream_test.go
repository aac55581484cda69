package client

import (
	"testing"
	"time"
)

// TestVoterStreams_due stamps for the farthest of those that are needed, later each time.
func TestVoterStreams_due(t *testing.T) {
	f := &voterStreams{streams: map[uint64]*voterStream{}}
	for id, trip := range map[uint64]time.Duration{1: 20, 2: 10, 3: 60, 4: 40, 5: 200} {
		l := &voterStream{link: &link{}}
		l.link.distance.Store(int64(trip * time.Millisecond))
		f.streams[id] = l
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
