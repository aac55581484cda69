package server

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/rpc/metrics"
	"github.com/quorate/quorate/internal/transport"
)

// collectPeers shows what the transport counts.
func collectPeers(e *metrics.Emitter, self consensus.MemberID, t *transport.Transport) {
	stats, local := t.Stats(), self.String()
	e.Gauge("quorate_peer_streams_unmet", "Streams and calls to the peer port without a hello yet.",
		float64(stats.Unmet))
	e.Counter("quorate_peer_streams_silent_total",
		"Streams and calls to the peer port that were ended because no hello came.", float64(stats.Silent))
	for i := range stats.Peers {
		p := &stats.Peers[i]
		peer := p.Peer.String()
		e.Gauge("etcd_network_active_peers", "1 while the peer is connected.", metrics.Bool(!p.ConnectedSince.IsZero()),
			"Local", local, "Remote", peer)
		e.Counter("etcd_network_peer_sent_bytes_total", "Bytes sent to the peer.", float64(p.Sent.Bytes),
			"To", peer)
		e.Counter("etcd_network_peer_received_bytes_total", "Bytes received from the peer.", float64(p.Received.Bytes),
			"From", peer)
		e.Counter("quorate_peer_sent_plain_bytes_total",
			"Bytes sent to the peer before they were compressed; etcd_network_peer_sent_bytes_total counts them after that.",
			float64(p.Sent.Plain), "To", peer)
		for c := range transport.Cargos {
			cargo(e, peer, c, "ordered", p.Sent.Cargo[c]-p.SentExpress.Cargo[c])
			cargo(e, peer, c, "express", p.SentExpress.Cargo[c])
		}
		e.Counter("quorate_peer_received_plain_bytes_total",
			"Bytes received from the peer, uncompressed; etcd_network_peer_received_bytes_total counts them as they came.",
			float64(p.Received.Plain), "From", peer)
		e.Counter("etcd_network_peer_sent_failures_total", "Messages dropped for the peer.", float64(p.Dropped),
			"To", peer)
		e.Counter("etcd_network_disconnected_peers_total", "Connections that broke.", float64(p.Losses),
			"Local", local, "Remote", peer)
		roundTrips(e, peer, &p.RoundTrips)
		e.Gauge("quorate_peer_round_trip_seconds", "Last measured round trip; 0 if unknown.", p.RTT.Seconds(),
			"Remote", peer)
	}
}

// cargo shows what one of the streams to a peer carried, and for what.
func cargo(e *metrics.Emitter, peer string, c transport.Cargo, stream string, bytes uint64) {
	e.Counter("quorate_peer_sent_cargo_bytes_total",
		"Bytes sent to the peer before they were compressed, by what messages are for and by stream; without snapshots.",
		float64(bytes), "To", peer, "cargo", c.String(), "stream", stream)
}

// roundTrips is the histogram that etcd's alert on slow communication between members looks at.
func roundTrips(e *metrics.Emitter, peer string, trips *transport.Trips) {
	buckets := make(map[float64]uint64, len(trips.Within))
	for i, count := range trips.Within {
		buckets[transport.TripBounds[i].Seconds()] = count
	}
	e.Histogram("etcd_network_peer_round_trip_time_seconds", "Round trips to the peer, measured by pings.",
		trips.Count, trips.Sum.Seconds(), buckets, "To", peer)
}
