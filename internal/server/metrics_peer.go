package server

import (
	"github.com/quorate/quorate/internal/rpc/metrics"
	"github.com/quorate/quorate/internal/transport"
)

// roundTrips is the histogram that etcd's alert on slow communication between members looks at.
func roundTrips(e *metrics.Emitter, peer string, trips *transport.Trips) {
	buckets := make(map[float64]uint64, len(trips.Within))
	for i, count := range trips.Within {
		buckets[transport.TripBounds[i].Seconds()] = count
	}
	e.Histogram("etcd_network_peer_round_trip_time_seconds", "Round trips to the peer, measured by pings.",
		trips.Count, trips.Sum.Seconds(), buckets, "To", peer)
}
