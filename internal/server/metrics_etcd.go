package server

import (
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/internal/base/histogram"
	"github.com/quorate/quorate/internal/rpc/metrics"
)

// absent are families of etcd's whose part does not exist here. They are shown, always zero or empty, because dashboards and
// etcd's own suite ask for the name; most are zero in an etcd of today, too.
var absent = []struct {
	show func(e *metrics.Emitter, name, help string)
	name string
	why  string
}{
	{emptyHistogram, "etcd_debugging_disk_backend_commit_rebalance_duration_seconds", "there is no bbolt file"},
	{emptyHistogram, "etcd_debugging_disk_backend_commit_spill_duration_seconds", "there is no bbolt file"},
	{emptyHistogram, "etcd_debugging_disk_backend_commit_write_duration_seconds",
		"a flush is one step: etcd_disk_backend_commit_duration_seconds"},
	{emptyHistogram, "etcd_debugging_mvcc_index_compaction_pause_duration_milliseconds", "there is no index in memory"},
	{emptyHistogram, "etcd_debugging_snap_save_marshalling_duration_seconds", "the store is its own snapshot"},
	{emptyHistogram, "etcd_debugging_snap_save_total_duration_seconds", "the store is its own snapshot"},
	{emptyHistogram, "etcd_snap_fsync_duration_seconds", "the store is its own snapshot"},
	{emptyHistogram, "etcd_snap_db_fsync_duration_seconds", "a received snapshot is no single file"},
	{emptyHistogram, "etcd_snap_db_save_total_duration_seconds", "a received snapshot is no single file"},
	{zeroCounter, "etcd_debugging_store_expires_total", "there is no v2 store"},
	{zeroCounter, "etcd_debugging_store_watch_requests_total", "there is no v2 store"},
	{zeroGauge, "etcd_debugging_store_watchers", "there is no v2 store"},
	{zeroGauge, "etcd_grpc_proxy_cache_hits_total", "a member is no proxy"},
	{zeroGauge, "etcd_grpc_proxy_cache_keys_total", "a member is no proxy"},
	{zeroGauge, "etcd_grpc_proxy_cache_misses_total", "a member is no proxy"},
	{zeroCounter, "etcd_grpc_proxy_events_coalescing_total", "a member is no proxy"},
	{zeroGauge, "etcd_grpc_proxy_watchers_coalescing_total", "a member is no proxy"},
}

var nothing = histogram.New(0.001, 14)

func emptyHistogram(e *metrics.Emitter, name, help string) { e.Distribution(name, help, nothing) }
func zeroCounter(e *metrics.Emitter, name, help string)    { e.Counter(name, help, 0) }
func zeroGauge(e *metrics.Emitter, name, help string)      { e.Gauge(name, help, 0) }

func collectAbsent(e *metrics.Emitter) {
	for _, family := range absent {
		family.show(e, family.name, "Always zero: "+family.why+".")
	}
}

// collectProcess shows what etcd shows of the process beside what every Go program shows.
func (s *Server) collectProcess(e *metrics.Emitter) {
	e.Gauge("os_fd_limit", "Files and connections that this process may have open.", float64(openFiles()))
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		e.Gauge("os_fd_used", "Files and connections that this process has open.", float64(len(open)))
	}
	for _, gate := range s.cfg.FeatureGates.All() {
		e.Gauge("etcd_server_feature_enabled", "1 if the feature gate is on.", metrics.Bool(gate.On), "name", gate.Name,
			"stage", gate.Stage)
	}
}

// registerEtcd adds the families that only exist for those who know etcd.
func (s *Server) registerEtcd(registry *prometheus.Registry) {
	registry.MustRegister(metrics.Collector(collectAbsent, s.collectProcess))
}
