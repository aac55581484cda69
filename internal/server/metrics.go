package server

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/quorate/quorate/internal/base/histogram"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/kv/counts"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/rpc/metrics"
	"github.com/quorate/quorate/internal/server/certs"
	"github.com/quorate/quorate/internal/transport"
)

// timings are the histograms that the member fills while it works.
type timings struct {
	sync       *histogram.Histogram // seconds, as write and apply
	write      prometheus.Histogram
	syncing    time.Time // when the write under way was about to be synced; of the goroutine that writes the log
	counts     *counts.Counts
	apply      *histogram.Histogram
	flush      prometheus.Histogram
	slow       prometheus.Counter
	begun      time.Time
	slowLogged atomic.Int64 // when a slow apply was logged last, in nanoseconds after begun
}

func newTimings() *timings {
	buckets := prometheus.ExponentialBuckets(0.0001, 2, 16) // 0.1 ms to 3.3 s
	return &timings{
		sync: histogram.New(0.0001, 16),
		write: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "etcd_disk_wal_write_duration_seconds", Buckets: buckets,
			Help: "Time of one write of the log, without its sync.",
		}),
		counts: counts.New(),
		apply:  histogram.New(0.0001, 16),
		flush: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "etcd_disk_backend_commit_duration_seconds", Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
			Help: "Time in which the store made durable on disk what it held in memory.",
		}),
		slow: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "etcd_server_slow_apply_total",
			Help: "Batches of entries that took longer to apply than --warning-apply-duration.",
		}),
		begun: time.Now(),
	}
}

// collect shows the histograms that the doctor reads, too.
func (t *timings) collect(e *metrics.Emitter) {
	e.Distribution("etcd_disk_wal_fsync_duration_seconds", "Time of one sync of the log. A slow disk shows here first.", t.sync)
	e.Distribution("quorate_apply_duration_seconds",
		"Time of one batch of applied entries, in memory: the store writes them to disk beside it.", t.apply)
}

// written is told when a write of the log is about to be synced, synced how long it took in all.
func (t *timings) written() { t.syncing = time.Now() }

func (t *timings) synced(took time.Duration) {
	if t.syncing.IsZero() { // --unsafe-no-fsync
		t.write.Observe(took.Seconds())
		return
	}
	syncing := min(time.Since(t.syncing), took)
	t.sync.Observe(syncing.Seconds())
	t.write.Observe((took - syncing).Seconds())
	t.syncing = time.Time{}
}

// register gathers the metrics of all parts: etcd's names where the meaning is the same, quorate_ elsewhere.
func (s *Server) register(registry *prometheus.Registry) {
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		s.clients.spans.failures(),
		s.clients.spans.dropped(),
		s.services.Collector(),
		metrics.Collector((&partCounters{member: s.member, transport: s.transport, peerCerts: s.peerCerts}).collect,
			func(e *metrics.Emitter) {
				collectMemory(e, &s.budgets, s.member, s.conns.peers, s.transport.PackingBytes(), s.shippedBytes(),
					s.proofBytes())
			}),
		metrics.Collector(s.expiries().collect, s.timings.collect, s.observer.Load().Collect, s.collectAudit),
		s.timings.write, s.timings.flush, s.timings.slow,
	)
	s.registerEtcd(registry)
	registry.MustRegister(s.reserveMetrics()...)
	if s.disk.keys != nil {
		registry.MustRegister(s.keyMetrics())
	}
	registry.MustRegister(s.connMetrics()...)
	if s.dropped != nil {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "quorate_log_dropped_total",
			Help: "Lines of the log that an output did not take in time, or at all.",
		}, func() float64 { return float64(s.dropped()) }))
	}
}

// partCounters shows the counters that log, store and transport keep anyway.
type partCounters struct {
	member    *member.Member
	transport *transport.Transport
	peerCerts *certs.Keeper
}

// collect reads every counter once.
func (c *partCounters) collect(e *metrics.Emitter) {
	e.Counter("quorate_proposals_inferred_total",
		"Proposals of this member that it found committed before the leader told it.", float64(c.member.Inferred()))
	e.Gauge("quorate_proposals_held",
		"Proposals that wait at this member until earlier ones have their results, so that links do not fill.",
		float64(c.member.HeldProposals()))
	comparisons := c.member.IntegrityCounts()
	e.Counter("quorate_integrity_comparisons_total",
		"Rounds in which this member, as leader, compared what the members hold.", float64(comparisons.Compared))
	e.Counter("quorate_integrity_differences_total", "Rounds of these that found a difference.", float64(comparisons.Different))
	c.collectFast(e)
	c.collectRefused(e)
	c.collectLog(e)
	c.collectStorage(e)
	collectPeers(e, c.member.ID(), c.transport)
	c.collectIdentity(e)
	c.collectLevels(e)
	c.collectBackup(e)
	e.Counter("etcd_server_heartbeat_send_failures_total",
		"Times that this leader was late with its heartbeat by more than two intervals, because it had no processor or disk.",
		float64(c.member.LateHeartbeats()))
	e.Gauge("etcd_mvcc_db_open_read_transactions", "Who reads the store now.", float64(c.member.Readers()))
}

// collectIdentity shows whom this member refused: docs/recover.md.
func (c *partCounters) collectIdentity(e *metrics.Emitter) {
	for reason := identity.Welcome + 1; int(reason) < identity.Reasons; reason++ {
		refused := c.transport.Refusals(reason)
		if reason == identity.WrongCertificate {
			refused += c.peerCerts.Refused() // before the process has said who it is
		}
		e.Counter("quorate_peer_refusals_total",
			"Connections and calls of other members that were refused, by reason, and refusals of this member that it did "+
				"not believe (other-history).",
			float64(refused), "reason", reason.String())
	}
	e.Gauge("quorate_foreign_epoch_peers",
		"Members of other epochs of this cluster that are about: it was recovered without them, or they without this one.",
		float64(len(c.member.ForeignEpochs())))
	e.Gauge("quorate_epoch", "Number of the cluster's epoch that this member's data have: 0 until a quorum was lost for ever.",
		float64(c.member.Epoch()))
	e.Gauge("quorate_superseded",
		"1 while this member serves nothing because the cluster was recovered without it.",
		metrics.Bool(c.member.Superseded() != nil))
}

// collectLevels shows the feature levels: docs/upgrade.md.
func (c *partCounters) collectLevels(e *metrics.Emitter) {
	machine, release := c.member.Machine()
	defer release()
	e.Gauge("quorate_feature_level", "The active feature level of the cluster, as applied here.",
		float64(machine.ActiveLevel()))
	e.Gauge("quorate_feature_level_build", "The highest feature level that this member's build knows.",
		float64(machine.OwnLevel()))
}

// collectBackup shows the continuous backup, as applied here. Times are by the clocks of the members that shipped.
func (c *partCounters) collectBackup(e *metrics.Emitter) {
	machine, release := c.member.Machine()
	defer release()
	row := machine.Backup()
	if row.Generation == 0 {
		return
	}
	p := &row.Progress
	seconds := func(millis int64) float64 { return float64(millis) / 1000 }
	e.Gauge("quorate_backup_on", "1 while the cluster ships a continuous backup.", metrics.Bool(row.Policy.On))
	e.Gauge("quorate_backup_ships", "1 while this member is the one that ships it.",
		metrics.Bool(row.Member == uint64(c.member.ID())))
	e.Gauge("quorate_backup_recipients", "Recipients that the backup is encrypted to; 0: it is in the clear.",
		float64(len(strings.Fields(row.Policy.Recipients))))
	e.Counter("quorate_backup_turns_total", "Appointments of a member that ships, and policies.", float64(row.Turn))
	e.Gauge("quorate_backup_reported_time_seconds", "Unix time of the last report of a member that ships.", seconds(p.At))
	e.Gauge("quorate_backup_restorable_time_seconds", "Unix time of the last state that can be restored.",
		seconds(p.Restorable.Time))
	e.Gauge("quorate_backup_restorable_revision", "Revision of the last state that can be restored.",
		float64(p.Restorable.Revision))
	e.Gauge("quorate_backup_base_time_seconds", "Unix time of the newest base.", seconds(p.Base.Time))
	e.Counter("quorate_backup_gaps_total", "Times that entries were left out, since the backup goes to this place.",
		float64(p.Gaps))
	e.Gauge("quorate_backup_retention_time_seconds", "Unix time when the last round of retention ended.",
		seconds(p.Retention.At))
	e.Gauge("quorate_backup_retention_from_time_seconds",
		"Unix time since when retention keeps any moment; 0: as far back as there are bases.", seconds(p.Retention.From))
	e.Gauge("quorate_backup_retention_removed_objects", "Objects that the last round of retention removed.",
		float64(p.Retention.Removed))
	e.Gauge("quorate_backup_retention_removed_bytes", "Bytes of these objects.", float64(p.Retention.Bytes))
	e.Gauge("quorate_backup_retention_fails", "1 while less is removed than the rule lets it.",
		metrics.Bool(p.Retention.Why != ""))
	last, proven := &row.Proofs.Last, &row.Proofs.Proven
	e.Gauge("quorate_backup_verified", "1 if the last try to prove the backup by a restore did.", metrics.Bool(last.Proven))
	e.Gauge("quorate_backup_verified_failed", "1 if the last try failed because the backup is damaged.",
		metrics.Bool(last.Failed))
	e.Gauge("quorate_backup_verified_tried_time_seconds", "Unix time of the last try.", seconds(last.At))
	e.Gauge("quorate_backup_verified_damaged_objects", "Objects that the last try found to be damaged.", float64(last.Damaged))
	e.Gauge("quorate_backup_verified_time_seconds", "Unix time of the last restore that proved a state.", seconds(proven.At))
	e.Gauge("quorate_backup_verified_revision", "Revision of the state that it proved.", float64(proven.Point.Revision))
	e.Gauge("quorate_backup_verified_duration_seconds", "Time that it took.", seconds(proven.Took))
	e.Gauge("quorate_backup_verifies", "1 while this member is the one that tries to prove the backup.",
		metrics.Bool(row.Proofs.Member == uint64(c.member.ID())))
}

// collectRefused shows the messages between members that were dropped.
func (c *partCounters) collectRefused(e *metrics.Emitter) {
	for reason, n := range c.member.CoreCounts().Refused {
		e.Counter("quorate_raft_messages_refused_total",
			"Messages of other members that were dropped because no sound member sends them, by reason.",
			float64(n), "reason",
			filter.Reason(reason).String())
	}
}

// collectLog shows how much memory the log takes: docs/limits.md.
func (c *partCounters) collectLog(e *metrics.Emitter) {
	log := c.member.CoreCounts().Log
	gauge := func(part string, value int) {
		e.Gauge("quorate_raft_log_bytes",
			"Memory of the log: all that is held, of it what is committed and not applied, and of that what is being applied.",
			float64(value), "part", part)
	}
	gauge("held", log.Held)
	gauge("unapplied", log.Ready)
	gauge("applying", log.Applying)
	e.Counter("quorate_raft_appends_withheld_total",
		"Appends of the leader that this member did not take because too much waited to be applied.", float64(log.Withheld))
	e.Counter("quorate_snapshots_outrun_total",
		"Snapshots to members that this leader gave up for newer ones, because the log had grown too far beyond them.",
		float64(log.Outrun))
}

// collectFast shows what the fast path did: docs/fast-path.md.
func (c *partCounters) collectFast(e *metrics.Emitter) {
	counts := c.member.FastCounts()
	count := func(name, help string, value uint64) { e.Counter(name, help, float64(value)) }
	count("quorate_fast_proposals_total", "Proposals of this member that were offered to all voters at once.", counts.Tried)
	count("quorate_fast_wins_total", "Proposals of this member that a superquorum decided.", counts.Decided)
	count("quorate_fast_overtaken_total",
		"Proposals of this member that committed while those who had answered agreed.", counts.Overtaken)
	count("quorate_fast_disagreed_total",
		"Proposals of this member that committed after members had given them different revisions.", counts.Disagreed)
	count("quorate_fast_records_total", "Proposals of any member that this voter has held.", counts.Accepted)
	count("quorate_fast_answers_total", "Proposals that this member, as leader, fixed to a revision.", counts.Answered)
	count("quorate_fast_recovered_total", "Records that this member, as a new leader, put into the log.", counts.Recovered)
	count("quorate_fast_aborted_total", "Proposals that this leader gave up because nobody asked for them any more.",
		counts.Aborted)
	count("quorate_fast_barred_total",
		"Records that this voter did not hold because their proposer was found not to propose what it offers.",
		counts.Barred)
	for reason := 1; reason < consensus.RefusedReasons; reason++ {
		e.Counter("quorate_fast_refusals_total",
			"Answers of leader and voters that they do not take a proposal of this member the fast way, by reason.",
			float64(counts.Refused[reason]),
			"reason", consensus.Refused(reason).String())
	}
	e.Gauge("quorate_fast_records_held", "Records that this voter holds now.", float64(counts.Held))
}

func (c *partCounters) collectStorage(e *metrics.Emitter) {
	log, store := c.member.StorageStats()
	e.Gauge("etcd_disk_wal_write_bytes_total", "Bytes of records written to the log.", float64(log.RecordBytes))
	e.Counter("quorate_wal_syncs_total", "Syncs of the log.", float64(log.Syncs))
	e.Counter("quorate_wal_appended_bytes_total", "Bytes of what the log was given to write, before it packs them.",
		float64(log.ItemBytes))
	e.Counter("quorate_wal_witness_bytes_total", "Of these, witness records of the fast path.", float64(log.WitnessBytes))
	for part, bytes := range map[string]uint64{
		"records": log.RecordBytes, "segments": log.SegmentBytes, "ahead": log.AheadBytes,
	} {
		e.Counter("quorate_wal_written_bytes_total", "Bytes written to the log, in records, by what segments begin with, "+
			"and as zeros ahead of them.", float64(bytes), "part", part)
	}
	e.Counter("quorate_wal_appends_total", "Appends to the log.", float64(log.Appends))
	e.Counter("quorate_wal_packed_appends_total", "Of these, those whose records are packed.", float64(log.Packed))
	e.Counter("quorate_wal_entries_total", "Entries written to the log.", float64(log.Entries))
	e.Gauge("quorate_wal_disk_bytes", "Disk space of the log, spare segments included.", float64(log.DiskBytes))
	e.Gauge("quorate_store_disk_bytes", "Disk space of the store.", float64(store.DiskBytes))
	e.Gauge("quorate_store_bound_bytes", "First and last keys of the store's tables, which lie in memory.",
		float64(store.BoundBytes))
	e.Gauge("quorate_store_memtable_bytes", "Bytes that the store has not written to disk yet.", float64(store.MemTableBytes))
	e.Gauge("quorate_store_read_amplification", "Levels that a read may have to look at.", float64(store.ReadAmplification))
	e.Gauge("quorate_store_pressure", "How near the store is to a write stall: 0 idle, 1 stalled.", store.Pressure)
	e.Counter("quorate_store_stalls_total", "Times that writes had to wait for the store.", float64(store.Stalls))
	e.Counter("quorate_store_flushed_bytes_total", "Bytes written from memory.", float64(store.FlushedBytes))
	e.Counter("quorate_store_compacted_bytes_total", "Bytes rewritten by LSM compactions.", float64(store.CompactedBytes))
	for part, bytes := range map[string]uint64{
		"flushed_rows": store.FlushedBytes - store.FlushedValues, "flushed_values": store.FlushedValues,
		"compacted_rows": store.CompactedBytes - store.CompactedValues, "compacted_values": store.CompactedValues,
		"rewritten_values": store.RewrittenValues,
	} {
		e.Counter("quorate_store_written_bytes_total", "Bytes written to tables of rows and to files of large values, by "+
			"flushes, by LSM compactions, and by rewriting files of which much is garbage.", float64(bytes), "part", part)
	}
	for work, rests := range map[string]time.Duration{"flush": store.FlushRests, "compaction": store.CompactionRests} {
		e.Counter("quorate_store_rest_seconds_total", "How long flushes and LSM compactions rested, to leave processors to "+
			"requests.", rests.Seconds(), "work", work)
	}
	e.Counter("quorate_store_cache_hits_total", "Blocks found in the block cache.", float64(store.CacheHits))
	e.Counter("quorate_store_cache_misses_total", "Blocks read from files.", float64(store.CacheMisses))
}
