package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/internal/limits/admission"
)

// How many connections clients may have, and those of HTTP and metrics URLs. They have fewer if the process may not open so
// many files: store and log need some, and cannot do without.
const (
	maxClientConns  = 32_768
	maxHTTPConns    = 4_096 // of --listen-client-http-urls
	maxMetricsConns = 512   // of --listen-metrics-urls
	maxConsoleConns = 1_024 // of --listen-console-urls
	reservedFiles   = 8_192 // for store, log, and whatever else this process opens
)

// connLimits are the bounds of all listeners, each with its own: a full port keeps no client from another.
type connLimits struct {
	clients, http, metrics, console *admission.HostBound
	// Connections beyond the share of the peer port are taken in, and of the address that holds most those are closed on which
	// no member has a stream: processes that are no members evict each other, and members say who they are at once.
	peers *admission.Unidentified
}

func newConnLimits(descriptors uint64, peers int64) connLimits {
	clients := clientConns(descriptors)
	return connLimits{
		clients: connBound(clients),
		http:    connBound(min(maxHTTPConns, max(16, clients/8))),
		metrics: connBound(min(maxMetricsConns, max(16, clients/8))),
		console: connBound(min(maxConsoleConns, max(16, clients/8))),
		peers:   admission.NewUnidentified(peers),
	}
}

// connBound is a bound of which one address may have seven eighths.
func connBound(limit int) *admission.HostBound { return admission.NewHostBound(limit, limit-limit/8) }

// clientConns is how many connections of clients a process with so many file descriptors takes; zero: not known how many.
func clientConns(descriptors uint64) int {
	if descriptors == 0 {
		return maxClientConns
	}
	spare := descriptors / 2
	if descriptors > 2*reservedFiles {
		spare = descriptors - reservedFiles
	}
	return int(min(spare, maxClientConns))
}

// connMetrics shows the connections.
func (s *Server) connMetrics() []prometheus.Collector {
	var all []prometheus.Collector
	for _, row := range []struct {
		kind string
		of   interface {
			Counts() (open int, refused uint64)
		}
	}{
		{"client", s.conns.clients}, {"http", s.conns.http}, {"metrics", s.conns.metrics},
		{"console", s.conns.console}, {"peer", s.conns.peers},
	} {
		labels := prometheus.Labels{"kind": row.kind}
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quorate_connections", Help: "Connections to this member that are open.", ConstLabels: labels,
		}, func() float64 { open, _ := row.of.Counts(); return float64(open) }))
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "quorate_connections_refused_total", ConstLabels: labels,
			Help: "Connections that were closed because too many are open, or too many of one address.",
		}, func() float64 { _, refused := row.of.Counts(); return float64(refused) }))
	}
	return append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "quorate_connections_calmed_total",
		Help: "Client connections that were ended because they brought too many frames of HTTP/2 that ask for nothing, and " +
			"those of hosts that abandon requests, which were not taken (not counted with --grpc-transport=grpc-go).",
	}, func() float64 { return float64(s.clients.calmed()) }), prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "quorate_connections_silent_total",
		Help: "Connections that were closed because too many newer ones had not said yet what they want.",
	}, func() float64 { return float64(s.clients.silent.Load()) }))
}
