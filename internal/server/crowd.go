package server

import (
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/internal/lobby"
)

// How many connections clients may have, those of HTTP and metrics URLs, and other members. All but members have fewer if the
// process may not open so many files: store and log need some, and cannot do without.
const (
	maxClientConns  = 32_768
	maxHTTPConns    = 4_096 // of --listen-client-http-urls
	maxMetricsConns = 512   // of --listen-metrics-urls
	maxPeerConns    = 1_024
	reservedFiles   = 8_192 // for store, log, and whatever else this process opens
)

// crowds are the bounds of all listeners, each with its own: what fills one port keeps nobody from another.
type crowds struct {
	clients, http, metrics *crowd
	peers                  *peerCrowd
}

func newCrowds(descriptors uint64) crowds {
	clients := clientConns(descriptors)
	return crowds{
		clients: newCrowd(clients),
		http:    newCrowd(min(maxHTTPConns, max(16, clients/8))),
		metrics: newCrowd(min(maxMetricsConns, max(16, clients/8))),
		peers:   newPeerCrowd(maxPeerConns),
	}
}

// crowd bounds the connections of some listeners together. One address may have seven eighths of them. A connection too many
// is closed at once, so that its client tries another member.
type crowd struct {
	limit, hostLimit int

	mu      sync.Mutex
	open    int
	hosts   map[string]int
	refused uint64
}

func newCrowd(limit int) *crowd {
	return &crowd{limit: limit, hostLimit: limit - limit/8, hosts: map[string]int{}}
}

// clientConns is how many connections of clients a process with so many file descriptors takes; zero: nobody knows how many.
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

// listen bounds what l accepts.
func (c *crowd) listen(l net.Listener) net.Listener { return &crowdedListener{Listener: l, crowd: c} }

func (c *crowd) enter(host string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.limit || c.hosts[host] >= c.hostLimit {
		c.refused++
		return false
	}
	c.open++
	c.hosts[host]++
	return true
}

func (c *crowd) leave(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.hosts[host]--; c.hosts[host] == 0 {
		delete(c.hosts, host)
	}
}

func (c *crowd) counts() (open int, refused uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open, c.refused
}

type crowdedListener struct {
	net.Listener
	crowd *crowd
}

// Accept implements net.Listener.
func (l *crowdedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host := lobby.Host(conn.RemoteAddr())
		if l.crowd.enter(host) {
			return &crowdedConn{Conn: conn, leave: func() { l.crowd.leave(host) }}, nil
		}
		_ = conn.Close()
	}
}

// crowdedConn counts until it is closed.
type crowdedConn struct {
	net.Conn
	once  sync.Once
	leave func()
}

// Close implements net.Conn.
func (c *crowdedConn) Close() error {
	c.once.Do(c.leave)
	return c.Conn.Close()
}

// NetConn gives what is below, as tls.Conn does.
func (c *crowdedConn) NetConn() net.Conn { return c.Conn }

// crowdMetrics shows the connections.
func (s *Server) crowdMetrics() []prometheus.Collector {
	var all []prometheus.Collector
	for _, row := range []struct {
		kind string
		of   interface {
			counts() (open int, refused uint64)
		}
	}{
		{"client", s.crowds.clients}, {"http", s.crowds.http}, {"metrics", s.crowds.metrics}, {"peer", s.crowds.peers},
	} {
		labels := prometheus.Labels{"kind": row.kind}
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quorate_connections", Help: "Connections to this member that are open.", ConstLabels: labels,
		}, func() float64 { open, _ := row.of.counts(); return float64(open) }))
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "quorate_connections_refused_total", ConstLabels: labels,
			Help: "Connections that were closed because too many are open, or too many of one address.",
		}, func() float64 { _, refused := row.of.counts(); return float64(refused) }))
	}
	return append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "quorate_connections_silent_total",
		Help: "Connections that were closed because too many newer ones had not said yet what they want.",
	}, func() float64 { return float64(s.silent.Load()) }))
}
