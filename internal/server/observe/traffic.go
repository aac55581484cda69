package observe

import (
	"slices"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
)

// trafficOf is how calls of clients went between two tallies.
func trafficOf(before, now *tallies) *quoratepb.ObservedTraffic {
	was, is := &before.services, &now.services
	t := &quoratepb.ObservedTraffic{
		Writes: grown(is.Writes, was.Writes), Offered: grown(now.offered, before.offered),
		OneTrip: grown(now.oneTrip, before.oneTrip), Puts: grown(now.putsTook.count, before.putsTook.count),
		Reads: grown(now.readsTook.count, before.readsTook.count), Serializable: grown(is.Serializable, was.Serializable),
	}
	t.PutP50Us = now.putsTook.quantile(before.putsTook, 0.5).Microseconds()
	t.PutP99Us = now.putsTook.quantile(before.putsTook, 0.99).Microseconds()
	t.ReadP50Us = now.readsTook.quantile(before.readsTook, 0.5).Microseconds()
	t.ReadP99Us = now.readsTook.quantile(before.readsTook, 0.99).Microseconds()
	if n := grown(is.Split.Writes, was.Split.Writes); n > 0 {
		mean := func(is, was time.Duration) int64 { return max(0, (is-was).Microseconds()/int64(n)) }
		t.SplitWrites = n
		t.QueueUs, t.NetworkUs = mean(is.Split.Queue, was.Split.Queue), mean(is.Split.Network, was.Split.Network)
		t.SyncUs, t.ApplyUs = mean(is.Split.Sync, was.Split.Sync), mean(is.Split.Apply, was.Split.Apply)
	}
	return t
}

// mostPoints is how many points a series has, and pointPause the time between two of them.
const (
	mostPoints = 60
	pointPause = history / mostPoints
)

// seriesOf walks back from the last tally, so that all but the oldest point are of the same time.
func seriesOf(all []tallies, now time.Time) []*quoratepb.ObservedPoint {
	const step = int(pointPause / tallyPause)
	var points []*quoratepb.ObservedPoint
	for end := len(all) - 1; end > 0 && len(points) < mostPoints; end -= step {
		before, at := &all[max(0, end-step)], &all[end]
		points = append(points, &quoratepb.ObservedPoint{
			EndedMs: max(0, now.Sub(at.at).Milliseconds()), LastedMs: at.at.Sub(before.at).Milliseconds(),
			Writes: grown(at.services.Writes, before.services.Writes), OneTrip: grown(at.oneTrip, before.oneTrip),
			Reads:     grown(at.readsTook.count, before.readsTook.count),
			PutP99Us:  at.putsTook.quantile(before.putsTook, 0.99).Microseconds(),
			SyncP99Us: at.syncs.quantile(before.syncs, 0.99).Microseconds(),
		})
	}
	slices.Reverse(points)
	return points
}
