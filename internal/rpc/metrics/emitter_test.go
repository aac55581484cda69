package metrics_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/internal/rpc/metrics"
)

func TestCollector(t *testing.T) {
	var took metrics.Latencies
	for _, d := range []time.Duration{0, time.Millisecond, 2 * time.Millisecond, time.Hour} {
		took.Observe(d, "", time.Time{})
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.Collector(
		func(e *metrics.Emitter) { e.Gauge("a_gauge", "A gauge.", metrics.Bool(true), "kind", "x") },
		func(e *metrics.Emitter) { e.Counter("a_total", "A counter.", 3) },
		func(e *metrics.Emitter) { e.Latencies("took_seconds", "Times.", &took) },
	))
	families, err := registry.Gather()
	if err != nil || len(families) != 3 {
		t.Fatalf("got %d families, %v; want three", len(families), err)
	}
	gauge, counter, histogram := families[0].Metric[0], families[1].Metric[0], families[2].Metric[0].GetHistogram()
	if label := gauge.Label; gauge.GetGauge().GetValue() != 1 || len(label) != 1 || label[0].GetName() != "kind" ||
		label[0].GetValue() != "x" {
		t.Errorf("gauge: got %v", gauge)
	}
	if counter.GetCounter().GetValue() != 3 || families[1].GetHelp() != "A counter." {
		t.Errorf("counter: got %v", counter)
	}
	var got []uint64
	for _, bucket := range histogram.Bucket {
		got = append(got, bucket.GetCumulativeCount())
	}
	if histogram.GetSampleCount() != 4 || histogram.GetSampleSum() != 3600.003 || len(got) != 14 ||
		fmt.Sprint(got[:3]) != "[2 3 3]" || histogram.Bucket[0].GetUpperBound() != 0.001 {
		t.Errorf("histogram: got %v", histogram)
	}
}
