package grpcproxy

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"google.golang.org/grpc/codes"
)

// counts are the proxy's own metrics: those of etcd's proxy, and the bounds.
type counts struct {
	registry                       *prometheus.Registry
	started, handled, in, out      *prometheus.CounterVec
	healthSuccesses, healthFailure prometheus.Counter
}

// idle are metrics of what etcd's proxy has, and this one has not.
var idle = map[string]string{
	"etcd_grpc_proxy_watchers_coalescing_total": "Always zero: each watcher has a stream at a member.",
	"etcd_grpc_proxy_events_coalescing_total":   "Always zero: each watcher has a stream at a member.",
	"etcd_grpc_proxy_cache_keys_total":          "Always zero: nothing is cached.",
	"etcd_grpc_proxy_cache_hits_total":          "Always zero: nothing is cached.",
	"etcd_grpc_proxy_cache_misses_total":        "Always zero: nothing is cached.",
}

func newCounts() *counts {
	labels := []string{"grpc_type", "grpc_service", "grpc_method"}
	vector := func(name, help string, more ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append(labels[:3:3], more...))
	}
	c := &counts{
		registry: prometheus.NewRegistry(),
		started:  vector("grpc_server_started_total", "Total number of RPCs started on the server."),
		handled: vector("grpc_server_handled_total",
			"Total number of RPCs completed on the server, regardless of success or failure.", "grpc_code"),
		in:  vector("grpc_server_msg_received_total", "Total number of RPC stream messages received on the server."),
		out: vector("grpc_server_msg_sent_total", "Total number of gRPC stream messages sent by the server."),
		healthSuccesses: prometheus.NewCounter(prometheus.CounterOpts{Name: "etcd_server_health_success",
			Help: "The total number of successful health checks"}),
		healthFailure: prometheus.NewCounter(prometheus.CounterOpts{Name: "etcd_server_health_failures",
			Help: "The total number of failed health checks"}),
	}
	c.registry.MustRegister(c.started, c.handled, c.in, c.out, c.healthSuccesses, c.healthFailure,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for name, help := range idle {
		c.registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help}))
	}
	return c
}

// bound adds a bound to the metrics.
func (c *counts) bound(kind string, counts func() (int, uint64)) {
	labels := prometheus.Labels{"kind": kind}
	c.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "quorate_proxy_open", ConstLabels: labels,
			Help: "What clients have open at this proxy: connections, calls, bytes of messages that are held, calls whose " +
				"request has not arrived."},
			func() float64 { open, _ := counts(); return float64(open) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "quorate_proxy_refused_total", ConstLabels: labels,
			Help: "What was refused or ended because there was too much of it, or of one address."},
			func() float64 { _, refused := counts(); return float64(refused) }))
}

func (c *counts) began(m *method) { c.started.WithLabelValues(m.kind, m.service, m.name).Inc() }

func (c *counts) ended(m *method, code codes.Code) {
	c.handled.WithLabelValues(m.kind, m.service, m.name, code.String()).Inc()
}

func (c *counts) received(m *method) { c.in.WithLabelValues(m.kind, m.service, m.name).Inc() }

func (c *counts) sent(m *method) { c.out.WithLabelValues(m.kind, m.service, m.name).Inc() }
