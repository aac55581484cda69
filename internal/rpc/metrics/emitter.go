package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/internal/base/histogram"
)

// Collector makes a Prometheus collector of parts that write their own metrics.
func Collector(parts ...func(*Emitter)) prometheus.Collector { return collector(parts) }

type collector []func(*Emitter)

// Describe implements prometheus.Collector. It describes nothing in advance.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	e := &Emitter{out: out}
	for _, part := range c {
		part(e)
	}
}

// Emitter writes metrics; labels come as name, value, name, value.
type Emitter struct{ out chan<- prometheus.Metric }

// Gauge writes what goes up and down.
func (e *Emitter) Gauge(name, help string, value float64, labels ...string) {
	e.emit(prometheus.GaugeValue, name, help, value, labels)
}

// Counter writes what only grows.
func (e *Emitter) Counter(name, help string, value float64, labels ...string) {
	e.emit(prometheus.CounterValue, name, help, value, labels)
}

func (e *Emitter) emit(kind prometheus.ValueType, name, help string, value float64, labels []string) {
	names, values := splitLabels(labels)
	e.out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, value, values...)
}

// Latencies writes a histogram of seconds.
func (e *Emitter) Latencies(name, help string, l *Latencies, labels ...string) {
	total, sum, buckets := l.cumulative()
	e.histogram(name, help, total, sum.Seconds(), buckets, l.traced.All(), labels)
}

// Distribution writes a histogram, in its unit.
func (e *Emitter) Distribution(name, help string, h *histogram.Histogram, labels ...string) {
	count, sum, buckets := h.Read()
	e.histogram(name, help, count, sum, buckets, h.Exemplars(), labels)
}

// Histogram writes count observations of this sum; buckets says how many of them were at most so large.
func (e *Emitter) Histogram(
	name, help string, count uint64, sum float64, buckets map[float64]uint64, labels ...string,
) {
	e.histogram(name, help, count, sum, buckets, nil, labels)
}

// histogram is Histogram, with exemplars. Only an answer in OpenMetrics shows them.
func (e *Emitter) histogram(
	name, help string, count uint64, sum float64, buckets map[float64]uint64, traced []histogram.Exemplar, labels []string,
) {
	names, values := splitLabels(labels)
	metric := prometheus.MustNewConstHistogram(prometheus.NewDesc(name, help, names, nil), count, sum, buckets, values...)
	if len(traced) > 0 {
		exemplars := make([]prometheus.Exemplar, len(traced))
		for i, one := range traced {
			exemplars[i] = prometheus.Exemplar{
				Value: one.Value, Labels: prometheus.Labels{"trace_id": one.Trace}, Timestamp: one.At,
			}
		}
		metric = prometheus.MustNewMetricWithExemplars(metric, exemplars...)
	}
	e.out <- metric
}

func splitLabels(labels []string) (names, values []string) {
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	return names, values
}

// Bool is 1 for yes.
func Bool(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
