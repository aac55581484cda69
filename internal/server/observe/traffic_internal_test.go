package observe

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/histogram"
	"github.com/quorate/quorate/internal/rpc"
)

// Ensure that traffic is the difference of two tallies, that times lie within their buckets, and that nothing is made up where
// nothing was counted or counts began anew.
func TestTrafficOf(t *testing.T) {
	puts, reads := histogram.New(0.001, 14), histogram.New(0.001, 14)
	take := func() *tallies { return &tallies{putsTook: read(puts), readsTook: read(reads)} }
	puts.ObserveMany(1, 50) // before the window
	before := take()
	if got := trafficOf(before, before); !proto.Equal(got, &quoratepb.ObservedTraffic{}) {
		t.Errorf("of nothing: %v", got)
	}
	puts.ObserveMany(0.0015, 90)
	puts.ObserveMany(0.1, 10)
	reads.ObserveMany(0.0005, 7)
	now := take()
	now.offered, now.oneTrip = 60, 40
	now.services = rpc.Tally{Writes: 100, Serializable: 3, Split: rpc.SplitTally{Writes: 16, Queue: 16 * time.Millisecond,
		Network: 32 * time.Millisecond, Sync: 48 * time.Millisecond, Apply: 8 * time.Millisecond}}
	got := trafficOf(before, now)
	if got.Writes != 100 || got.Offered != 60 || got.OneTrip != 40 || got.Puts != 100 || got.Reads != 7 || got.Serializable != 3 {
		t.Errorf("counts: %v", got)
	}
	if got.PutP50Us < 1000 || got.PutP50Us > 2000 || got.PutP99Us < 64_000 || got.PutP99Us > 128_000 || got.ReadP99Us > 1000 {
		t.Errorf("times: %v", got)
	}
	if got.SplitWrites != 16 || got.QueueUs != 1000 || got.NetworkUs != 2000 || got.SyncUs != 3000 || got.ApplyUs != 500 {
		t.Errorf("the split: %v", got)
	}
	if back := trafficOf(now, before); !proto.Equal(back, &quoratepb.ObservedTraffic{}) {
		t.Errorf("of counts that began anew: %v", back)
	}
}

// Ensure that a series has at most sixty points, which follow one another up to the last tally.
func TestSeriesOf(t *testing.T) {
	begun := time.Unix(1000, 0)
	for _, row := range []struct{ tallies, points int }{{0, 0}, {1, 0}, {2, 1}, {3, 1}, {4, 2}, {121, 60}, {500, 60}} {
		var all []tallies
		for i := range row.tallies {
			all = append(all, tallies{at: begun.Add(time.Duration(i) * tallyPause), services: rpc.Tally{Writes: uint64(10 * i)}})
		}
		now := begun.Add(time.Duration(row.tallies)*tallyPause + time.Second)
		got := seriesOf(all, now)
		if len(got) != row.points {
			t.Fatalf("%d tallies: %d points", row.tallies, len(got))
		}
		for i, p := range got {
			if i > 0 && p.EndedMs+p.LastedMs != got[i-1].EndedMs {
				t.Errorf("%d tallies: %v does not follow %v", row.tallies, p, got[i-1])
			}
			if p.Writes != uint64(2*p.LastedMs/1000) {
				t.Errorf("%d tallies: %v: want 2 writes a second", row.tallies, p)
			}
		}
		if row.points > 0 && got[row.points-1].EndedMs != 6000 {
			t.Errorf("%d tallies: the last is %v", row.tallies, got[row.points-1])
		}
	}
}
