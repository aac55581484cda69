package cpuparts

import (
	"strings"

	"github.com/google/pprof/profile"
)

// Lane is what works beside all else in a member: one goroutine, or some that do the same.
type Lane int

const (
	LoopLane Lane = iota
	DiskLane
	ApplyLane
	WatchLane
	ClientLane
	PeerLane
	OtherLanes
	Lanes // how many there are
)

// lanes has the lane of a goroutine by a prefix of the name of its first functions.
var lanes = []struct {
	prefix string
	lane   Lane
}{
	{ours + "member.(*Member).runLoop", LoopLane},
	{ours + "member.(*Member).runDisk", DiskLane},
	{ours + "member.(*Member).runApply", ApplyLane},
	{ours + "kv/watch.", WatchLane},
	{ours + "rpc.(*watch", WatchLane},
	{ours + "h2.", ClientLane},
	{ours + "rpc/front.", ClientLane},
	{ours + "transport.", PeerLane},
	{"google.golang.org/grpc", PeerLane},
}

// LaneNanos is the processor time that each lane takes in a profile. The watch lane is what watches take in any goroutine.
func LaneNanos(p *profile.Profile) (nanos [Lanes]float64) {
	value := len(p.SampleType) - 1 // nanoseconds; the first one counts samples
	for _, sample := range p.Sample {
		nanos[laneOf(framesOf(sample))] += float64(sample.Value[value])
	}
	return nanos
}

// laneOf is the lane of one stack, the leaf first.
func laneOf(frames []string) Lane {
	lane := OtherLanes
	for i := len(frames) - 1; i >= 0; i-- {
		for _, l := range lanes {
			if strings.HasPrefix(frames[i], l.prefix) && (lane == OtherLanes || l.lane == WatchLane) {
				lane = l.lane
				break
			}
		}
	}
	return lane
}
