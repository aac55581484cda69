package rpc

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/quorate/quorate/internal/consensus"
)

// Collector gives the metrics that the services and the member's state show, under etcd's names. Everything is read
// when it is asked for: the services themselves only count in atomics.
func (s *Services) Collector() prometheus.Collector { return &collector{s: s} }

// collector implements prometheus.Collector. It describes nothing in advance, which Prometheus calls unchecked:
// the names below are the description.
type collector struct{ s *Services }

// Describe implements prometheus.Collector.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	e := emitter{out: out}
	c.collectServer(&e)
	c.collectStore(&e)
	c.collectClients(&e)
	c.collectHealth(&e)
	c.collectMethods(&e)
	c.collectMembership(&e)
	c.collectSessions(&e)
	c.collectAnswers(&e)
	c.collectBounds(&e)
	c.collectFirstMessages(&e)
}

// emitter writes metrics; labels come as name, value, name, value.
type emitter struct{ out chan<- prometheus.Metric }

func (e *emitter) gauge(name, help string, value float64, labels ...string) {
	e.emit(prometheus.GaugeValue, name, help, value, labels)
}

func (e *emitter) counter(name, help string, value float64, labels ...string) {
	e.emit(prometheus.CounterValue, name, help, value, labels)
}

func (e *emitter) emit(kind prometheus.ValueType, name, help string, value float64, labels []string) {
	names, values := splitLabels(labels)
	e.out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, value, values...)
}

func (e *emitter) histogram(name, help string, l *latencies, labels ...string) {
	names, values := splitLabels(labels)
	buckets := make(map[float64]uint64, latencyBounds)
	total, bound := uint64(0), time.Millisecond
	for i := range latencyBounds {
		total += l.counts[i].Load()
		buckets[bound.Seconds()] = total
		bound *= 2
	}
	total += l.counts[latencyBounds].Load()
	sum := time.Duration(l.sum.Load()).Seconds()
	desc := prometheus.NewDesc(name, help, names, nil)
	e.out <- prometheus.MustNewConstHistogram(desc, total, sum, buckets, values...)
}

func splitLabels(labels []string) (names, values []string) {
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	return names, values
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (c *collector) collectServer(e *emitter) {
	o := &c.s.options
	status := o.Member.Status()
	leader := o.Member.Leader()
	e.gauge("etcd_server_has_leader", "1 if this member knows a leader.", number(leader != consensus.NoMember))
	e.gauge("etcd_server_is_leader", "1 if this member leads.", number(leader == o.Member.ID()))
	e.gauge("etcd_server_is_learner", "1 if this member is a learner.", number(o.Member.Learner()))
	e.counter("etcd_server_leader_changes_seen_total", "Changes of leader, its loss included.",
		float64(c.s.stats.leaderChanges.Load()))
	e.gauge("quorate_alarms", "Alarms that are raised.", float64(len(c.s.alarms())))
	e.gauge("quorate_corrupt", "1 if this member is marked corrupt and serves nothing.", number(o.Member.Corrupt()))
	e.gauge("etcd_server_id", "1 for this member's id.", 1, "server_id", fmt.Sprintf("%x", c.s.self))
	e.gauge("etcd_server_version", "1 for the version that this server behaves like.", 1,
		"server_version", o.Version.Server)
	e.gauge("etcd_server_go_version", "1 for the Go version in use.", 1, "server_go_version", runtime.Version())
	e.gauge("etcd_cluster_version", "1 for the version of the cluster.", 1,
		"cluster_version", majorMinor(o.Version.Cluster))
	e.gauge("etcd_server_proposals_committed_total", "Index of the last committed entry.", float64(status.Commit))
	e.gauge("etcd_server_proposals_applied_total", "Index of the last applied entry.", float64(status.Applied))
	e.gauge("etcd_server_proposals_pending", "Proposals that wait for their result.", float64(c.s.stats.pending.Load()))
	e.counter("etcd_server_proposals_failed_total", "Proposals that ended without a result.",
		float64(c.s.stats.failedProposals.Load()))
	e.gauge("etcd_server_quota_backend_bytes", "Size that the store may reach; 2^63 if there is no limit.", quotaOf(o))
	e.counter("etcd_network_client_grpc_received_bytes_total", "Bytes of messages received from clients.",
		float64(c.s.stats.receivedBytes.Load()))
	e.counter("etcd_network_client_grpc_sent_bytes_total", "Bytes of messages sent to clients.",
		float64(c.s.stats.sentBytes.Load()))
	e.counter("quorate_slow_requests_total", "Requests that took longer than --warning-unary-request-duration.",
		float64(c.s.stats.slow.total.Load()))
	e.counter("etcd_server_learner_promote_successes", "Promotions that this member carried out.",
		float64(c.s.stats.promoted.Load()))
	c.s.stats.promoteFailures.Range(func(text, n any) bool {
		e.counter("etcd_server_learner_promote_failures", "Promotions that were refused, by reason.",
			float64(n.(*atomic.Uint64).Load()), "Reason", text.(string))
		return true
	})
}

// quotaOf is the limit in force. Alerts compare it with the size of the store, so that none is a very large one.
func quotaOf(o *Options) float64 {
	if o.QuotaBytes < 0 {
		return math.MaxInt64
	}
	return float64(o.QuotaBytes)
}

// majorMinor cuts "3.7.0" to "3.7".
func majorMinor(version string) string {
	dots := 0
	for i := range version {
		if version[i] == '.' {
			if dots++; dots == 2 {
				return version[:i]
			}
		}
	}
	return version
}

func (c *collector) collectStore(e *emitter) {
	machine, release := c.s.options.Member.Machine()
	defer release()
	store := machine.Store()
	size := store.Size()
	watches := c.s.options.Member.Hub().Stats()
	e.gauge("etcd_mvcc_db_total_size_in_bytes", "Bytes of the store's files and unwritten tables.",
		float64(size.DiskBytes+size.UnflushedBytes))
	e.gauge("etcd_mvcc_db_total_size_in_use_in_bytes", "Bytes of the versions kept.", float64(size.LogicalBytes))
	e.gauge("etcd_debugging_mvcc_keys_total", "Keys that exist.", float64(size.Keys))
	e.gauge("etcd_debugging_mvcc_current_revision", "Revision of the store.", float64(store.Revision()))
	e.gauge("etcd_debugging_mvcc_compact_revision", "Revision of the last compaction.",
		float64(store.CompactRevision()))
	e.gauge("etcd_debugging_mvcc_watch_stream_total", "Watch streams.", float64(watches.Streams))
	e.gauge("etcd_debugging_mvcc_watcher_total", "Watchers.", float64(watches.Watchers))
	e.gauge("etcd_debugging_mvcc_slow_watcher_total", "Watchers that are behind.", float64(watches.Behind))
	e.gauge("quorate_watch_waiting_bytes", "Bytes of watch responses that wait to be sent.", float64(watches.WaitingBytes))
	e.gauge("quorate_watch_watcher_bytes", "Bytes of all watchers.", float64(watches.WatcherBytes))
	e.gauge("quorate_leases", "Leases that exist.", float64(machine.Leases().Len()))
	e.gauge("quorate_leases_bytes", "What leases, and the keys that hang on them, count against the quota.",
		float64(machine.Leases().SizeBytes()))
	stats := c.s.stats
	e.counter("etcd_debugging_mvcc_events_total", "Events handed to watchers.", float64(stats.events.Load()))
	e.counter("etcd_mvcc_put_total", "Puts served by this member.", float64(stats.puts.Load()))
	e.counter("etcd_mvcc_delete_total", "Keys deleted by requests to this member.", float64(stats.deleted.Load()))
	e.counter("etcd_mvcc_range_total", "Ranges served by this member.", float64(stats.ranged.Load()))
	e.counter("etcd_mvcc_txn_total", "Writing transactions served by this member.", float64(stats.txns.Load()))
}

func (c *collector) collectClients(e *emitter) {
	for key, n := range *c.s.stats.clients.Load() {
		e.counter("etcd_server_client_requests_total", "Calls by the version that clients say they are.",
			float64(n.Load()), "type", key.kind.String(), "client_api_version", key.version)
	}
}

func (c *collector) collectHealth(e *emitter) {
	e.counter("etcd_server_health_success", "Health checks passed.", float64(c.s.stats.healthSuccess.Load()))
	e.counter("etcd_server_health_failures", "Health checks failed.", float64(c.s.stats.healthFailures.Load()))
	for _, group := range c.s.checks {
		for _, check := range group.checks {
			const help = "Health checks by kind and outcome."
			passed, failed := check.passed.Load(), check.failed.Load()
			if passed+failed == 0 {
				continue
			}
			e.gauge("etcd_server_healthcheck", "1 if the last check of the kind passed.",
				number(!check.lastFailed.Load()), "type", group.name, "name", check.name)
			e.counter("etcd_server_healthchecks_total", help, float64(passed),
				"type", group.name, "name", check.name, "status", "success")
			e.counter("etcd_server_healthchecks_total", help, float64(failed),
				"type", group.name, "name", check.name, "status", "error")
		}
	}
}

func (c *collector) collectMethods(e *emitter) {
	for _, m := range c.s.stats.order {
		labels := []string{"grpc_type", m.kind, "grpc_service", m.service, "grpc_method", m.method}
		e.counter("grpc_server_started_total", "Calls begun.", float64(m.started.Load()), labels...)
		e.counter("grpc_server_msg_received_total", "Messages received.", float64(m.received.Load()), labels...)
		e.counter("grpc_server_msg_sent_total", "Messages sent.", float64(m.sent.Load()), labels...)
		for code := range m.handled {
			n := m.handled[code].Load()
			if n == 0 && code != int(codes.OK) {
				continue
			}
			e.counter("grpc_server_handled_total", "Calls ended, by code.", float64(n),
				append(labels[:6:6], "grpc_code", codeName(codes.Code(code)))...)
		}
		if c.s.options.ExtensiveMetrics {
			e.histogram("grpc_server_handling_seconds", "How long calls took.", &m.latency, labels...)
		}
	}
}

func codeName(code codes.Code) string {
	if code > codes.Unauthenticated {
		return strconv.Itoa(int(code))
	}
	return code.String()
}
