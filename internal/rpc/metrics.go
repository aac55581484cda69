package rpc

import (
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/base/histogram"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/counts"
	"github.com/quorate/quorate/internal/rpc/metrics"
	"github.com/quorate/quorate/internal/rpc/timings"
)

// Collector returns the metrics of the services and of the member's state, under etcd's names. All of them are read when they
// are scraped: the services themselves only count in atomics.
func (s *Services) Collector() prometheus.Collector {
	parts := []func(*metrics.Emitter){
		s.collectServer, s.collectStore, s.collectConfig, s.gate.Collect, s.checker.Collect,
		s.collectAnswers, s.timings.Collect, s.bounds.collect, s.first.collect, s.gateway.Collect, s.collectAuth,
		s.collectLimits,
	}
	if s.membership != nil {
		parts = append(parts, s.membership.Collect)
	}
	if s.writer != nil {
		parts = append(parts, s.writer.Collect)
	}
	return metrics.Collector(parts...)
}

// Tally has counts of the services since the member started.
type Tally struct {
	LeaderChanges   uint64
	Writes          uint64        // commands that succeeded
	WritesTook      time.Duration // together
	FailedProposals uint64
	Pending         int64  // proposals that wait for their results now
	CallsRefused    uint64 // calls and streams beyond the bounds of clients
	Serializable    uint64 // ranges that succeeded, and asked no leader
	// Seconds that puts, and ranges, took that succeeded; read by the caller.
	PutsTook, ReadsTook *histogram.Histogram
	Split               SplitTally
	Limits              []LimitTally // sorted by name
}

// Tally returns the counts of this moment.
func (s *Services) Tally() Tally {
	c := Tally{LeaderChanges: s.gate.LeaderChanges(), FailedProposals: s.stats.failedProposals.Load(),
		Pending: s.stats.pending.Load(), CallsRefused: s.bounds.turnedAway()}
	c.Writes, c.WritesTook = s.timings.Commands()
	c.Serializable, c.Split = s.stats.serializable.Load(), s.splits.tally()
	c.Limits = s.tallyLimits()
	c.PutsTook, c.ReadsTook = s.timings.Succeeded(counts.Put.String()), s.timings.Succeeded(timings.Range)
	return c
}

// Busiest is how many hundredths of the processor time of clients' calls go to one prefix of keys, lately; 0: there were no
// calls.
func (s *Services) Busiest() int64 { return s.top.Busiest(s.options.Clock.Now()) }

func (s *shared) collectServer(e *metrics.Emitter) {
	o := &s.options
	status := o.Member.Status()
	leader := o.Member.Leader()
	e.Gauge("etcd_server_has_leader", "1 if this member knows a leader.", metrics.Bool(leader != consensus.NoMember))
	e.Gauge("etcd_server_is_leader", "1 if this member leads.", metrics.Bool(leader == o.Member.ID()))
	e.Gauge("etcd_server_is_learner", "1 if this member is a learner.", metrics.Bool(o.Member.Learner()))
	e.Gauge("quorate_alarms", "Alarms that are raised.", float64(len(s.alarms())))
	for _, alarm := range s.alarms() {
		e.Gauge("etcd_debugging_server_alarms", "1 for each alarm that is raised.", 1, "server_id",
			fmt.Sprintf("%x", alarm.Member), "alarm_type", pb.AlarmType(alarm.Kind).String())
	}
	e.Gauge("quorate_corrupt", "1 if this member is marked corrupt and serves nothing.", metrics.Bool(o.Member.Corrupt()))
	e.Gauge("etcd_server_id", "1 for this member's id.", 1, "server_id", fmt.Sprintf("%x", s.self))
	e.Gauge("etcd_server_version", "1 for the version that this server behaves like.", 1,
		"server_version", o.Version.Server)
	e.Gauge("etcd_server_go_version", "1 for the Go version in use.", 1, "server_go_version", runtime.Version())
	e.Gauge("etcd_cluster_version", "1 for the version of the cluster.", 1,
		"cluster_version", majorMinor(o.Version.Cluster))
	e.Gauge("etcd_server_proposals_committed_total", "Index of the last committed entry.", float64(status.Commit))
	e.Gauge("etcd_server_proposals_applied_total", "Index of the last applied entry.", float64(status.Applied))
	e.Gauge("etcd_server_proposals_pending", "Proposals that wait for their result.", float64(s.stats.pending.Load()))
	e.Counter("etcd_server_proposals_failed_total", "Proposals that ended without a result.",
		float64(s.stats.failedProposals.Load()))
	e.Gauge("etcd_server_quota_backend_bytes", "Size that the store may reach; 2^63 if there is no limit.", quotaOf(o))
	e.Counter("etcd_network_client_grpc_received_bytes_total", "Bytes of messages received from clients.",
		float64(s.stats.receivedBytes.Load()))
	e.Counter("etcd_network_client_grpc_sent_bytes_total", "Bytes of messages sent to clients.",
		float64(s.stats.sentBytes.Load()))
	e.Counter("etcd_server_learner_promote_successes", "Promotions that this member carried out.",
		float64(s.stats.promoted.Load()))
	s.stats.promoteFailures.Range(func(text, n any) bool {
		e.Counter("etcd_server_learner_promote_failures", "Promotions that were refused, by reason.",
			float64(n.(*atomic.Uint64).Load()), "Reason", text.(string))
		return true
	})
}

func (s *shared) collectAuth(e *metrics.Emitter) {
	users, logins := s.access.State(), s.options.Login.Stats()
	e.Gauge("etcd_debugging_auth_revision", "Revision of users and roles.", float64(users.Revision()))
	e.Gauge("quorate_auth_enabled", "1 if users must log in.", metrics.Bool(users.Enabled()))
	e.Gauge("quorate_auth_state_bytes", "What users and roles take.", float64(users.Bytes()))
	e.Gauge("quorate_auth_passwords_hashing", "Passwords that are being hashed or compared.", float64(logins.Hashing))
	e.Gauge("quorate_auth_passwords_waiting", "Passwords that wait to be hashed or compared.", float64(logins.Waiting))
	e.Counter("quorate_auth_logins_refused_total", "Logins that were refused because too many waited.",
		float64(logins.Refused))
	e.Gauge("quorate_auth_tokens_used", "Simple tokens whose last use this member remembers.", float64(logins.Used))
	e.Gauge("quorate_auth_catching_up", "Refused calls that wait to see whether this member only lags.",
		float64(s.access.CatchingUp()))
}

// quotaOf is the limit in force. Alerts compare it with the size of the store, so no limit is a very large one.
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

func (s *shared) collectStore(e *metrics.Emitter) {
	machine, release := s.options.Member.Machine()
	defer release()
	store := machine.Store()
	size := store.Size()
	watches := s.options.Member.Hub().Stats()
	// Alerts compare it with the quota, which counts uncompressed bytes: files may be smaller when writes are refused.
	e.Gauge("etcd_mvcc_db_total_size_in_bytes",
		"Bytes of the store's files and unwritten tables, or what counts against the quota if that is more.",
		float64(max(size.DiskBytes+size.UnflushedBytes, machine.SizeBytes())))
	e.Gauge("etcd_mvcc_db_total_size_in_use_in_bytes", "Bytes of the versions kept.", float64(size.LogicalBytes))
	e.Gauge("etcd_debugging_mvcc_keys_total", "Keys that exist.", float64(size.Keys))
	counted := store.CountStats()
	e.Gauge("quorate_key_counts_bytes", "What numbers of keys by interval take in memory, those of earlier revisions too.",
		float64(counted.Bytes))
	e.Gauge("quorate_key_counts_intervals", "Intervals of the key space whose keys are counted.",
		float64(counted.Intervals-counted.Unknown))
	e.Gauge("etcd_debugging_mvcc_current_revision", "Revision of the store.", float64(store.Revision()))
	e.Gauge("etcd_debugging_mvcc_compact_revision", "Revision of the last compaction.",
		float64(store.CompactRevision()))
	e.Gauge("etcd_debugging_mvcc_watch_stream_total", "Watch streams.", float64(watches.Streams))
	e.Gauge("etcd_debugging_mvcc_watcher_total", "Watchers.", float64(watches.Watchers))
	e.Gauge("etcd_debugging_mvcc_slow_watcher_total", "Watchers that are behind.", float64(watches.Behind))
	e.Gauge("quorate_watch_waiting_bytes", "Bytes of watch responses that wait to be sent.", float64(watches.WaitingBytes))
	e.Gauge("quorate_watch_overdrawn_streams",
		"Watch streams that wait until others of their client host have read large revisions.", float64(watches.Overdrawn))
	e.Gauge("quorate_watch_watcher_bytes", "Bytes of all watchers.", float64(watches.WatcherBytes))
	e.Gauge("quorate_leases", "Leases that exist.", float64(machine.Leases().Len()))
	e.Gauge("quorate_leases_bytes", "What leases, and the keys that hang on them, count against the quota.",
		float64(machine.Leases().SizeBytes()))
	stats := &s.stats
	e.Counter("etcd_debugging_mvcc_events_total", "Events handed to watchers.", float64(stats.events.Load()))
	e.Gauge("etcd_debugging_mvcc_pending_events_total", "Events that wait to be sent to watchers.",
		float64(watches.WaitingEvents))
	collectCounts(e, machine.Counts())
}

// collectConfig shows the configuration in force at this member.
func (s *shared) collectConfig(e *metrics.Emitter) {
	status := s.options.Member.Status()
	e.Gauge("quorate_config_index", "Index of the entry that brought the configuration in force.",
		float64(status.ConfigID.Index))
	e.Gauge("quorate_raft_last_index", "Index of the last entry of the log, committed or not.", float64(status.LastIndex))
	e.Gauge("quorate_raft_last_term", "Term of the last entry of the log.", float64(status.LastTerm))
	e.Gauge("quorate_config_joint", "1 while two sets of voters must agree.", metrics.Bool(status.Config.IsJoint()))
	e.Gauge("quorate_config_settled", "1 if no membership change is under way: removed members may be switched off.",
		metrics.Bool(status.ConfigSettled))
	e.Gauge("quorate_config_voters", "Voters of the configuration in force; while joint, of the new set.",
		float64(len(status.Config.Voters)))
	for _, member := range status.Config.Members {
		e.Gauge("etcd_network_known_peers", "1 for each member of the cluster.", 1, "Local", fmt.Sprintf("%x", s.self),
			"Remote", fmt.Sprintf("%x", uint64(member.ID)))
	}
	e.Gauge("quorate_config_learners", "Learners of the configuration in force.", float64(len(status.Config.Learners)))
}
