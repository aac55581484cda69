package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/internal/transport"
)

// roundTrips is the histogram that etcd's alert on slow communication between members looks at.
func roundTrips(peer string, trips *transport.Trips) prometheus.Metric {
	desc := prometheus.NewDesc("etcd_network_peer_round_trip_time_seconds", "Round trips to the peer, measured by pings.",
		[]string{"To"}, nil)
	buckets := make(map[float64]uint64, len(trips.Within))
	for i, count := range trips.Within {
		buckets[transport.TripBounds[i].Seconds()] = count
	}
	return prometheus.MustNewConstHistogram(desc, trips.Count, trips.Sum.Seconds(), buckets, peer)
}
