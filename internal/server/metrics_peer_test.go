package server

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/internal/rpc/metrics"
	"github.com/quorate/quorate/internal/transport"
)

func TestRoundTrips(t *testing.T) {
	within := make([]uint64, len(transport.TripBounds))
	for i := 1; i < len(within); i++ {
		within[i] = 2
	}
	trips := &transport.Trips{Within: within, Count: 3, Sum: 2 * time.Second}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.Collector(func(e *metrics.Emitter) { roundTrips(e, "a1", trips) }))
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "etcd_network_peer_round_trip_time_seconds" {
		t.Fatalf("got %v, %v", families, err)
	}
	got := families[0].Metric[0]
	h := got.Histogram
	if h.GetSampleCount() != 3 || h.GetSampleSum() != 2 || len(h.Bucket) != len(within) ||
		h.Bucket[0].GetUpperBound() != 0.0001 || h.Bucket[0].GetCumulativeCount() != 0 ||
		h.Bucket[1].GetCumulativeCount() != 2 || got.Label[0].GetName() != "To" || got.Label[0].GetValue() != "a1" {
		t.Errorf("got %v", got)
	}
}
