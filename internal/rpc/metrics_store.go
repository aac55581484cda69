package rpc

import (
	"strconv"

	"github.com/quorate/quorate/internal/kv/counts"
	"github.com/quorate/quorate/internal/rpc/metrics"
)

// collectCounts shows the counts of the store. As in etcd, every member counts the entries that it applies.
func collectCounts(e *metrics.Emitter, c *counts.Counts) {
	e.Counter("etcd_mvcc_put_total", "Puts that this member applied.", float64(c.Puts.Load()))
	e.Counter("etcd_mvcc_delete_total", "Deletions that this member applied, each of a key or a range.",
		float64(c.Deletes.Load()))
	e.Counter("etcd_mvcc_range_total", "Ranges that this member read, also in transactions.", float64(c.Ranges.Load()))
	e.Counter("etcd_mvcc_txn_total", "Transactions of more than one operation.", float64(c.Txns.Load()))
	e.Gauge("etcd_debugging_mvcc_total_put_size_in_bytes", "Bytes of the keys and values of all puts applied.",
		float64(c.PutBytes.Load()))
	e.Counter("etcd_debugging_lease_granted_total", "Leases granted.", float64(c.LeasesGranted.Load()))
	e.Counter("etcd_debugging_lease_revoked_total", "Leases ended, those that expired included.",
		float64(c.LeasesRevoked.Load()))
	e.Counter("etcd_debugging_lease_renewed_total", "Renewals of leases by this member as the leader.",
		float64(c.LeasesRenewed.Load()))
	e.Counter("etcd_debugging_server_lease_expired_total", "Leases that this member ended as the leader.",
		float64(c.LeasesExpired.Load()))
	e.Counter("quorate_leases_stood_seconds_total",
		"For how long the clock of leases stood still here, because renewals could not be served or the process stood still.",
		float64(c.LeasesStoodMillis.Load())/1e3)
	e.Distribution("etcd_debugging_lease_ttl_total", "Times to live of the leases granted, in seconds.", c.GrantedTTLs)
	for _, op := range counts.Ops() {
		for _, success := range [...]bool{false, true} {
			took := c.Durations(op, success)
			if count, _, _ := took.Read(); count > 0 {
				e.Distribution("etcd_server_apply_duration_seconds",
					"How long commands took to apply, each an equal part of the batch that it came in.", took,
					"version", "v3", "op", op.String(), "success", strconv.FormatBool(success))
			}
		}
	}
	e.Gauge("etcd_server_snapshot_apply_in_progress_total", "1 while a snapshot takes the place of the store.",
		metrics.Bool(c.Installing.Load()))
	did := &c.Compaction
	e.Counter("etcd_debugging_mvcc_db_compaction_keys_total", "Versions of keys that compactions deleted.",
		float64(did.Keys.Load()))
	e.Gauge("etcd_debugging_mvcc_db_compaction_last", "Unix time at which the last compaction was complete; 0: none was.",
		float64(did.Last.Load()))
	e.Distribution("etcd_debugging_mvcc_db_compaction_pause_duration_milliseconds",
		"How long the steps of compactions took. Nothing waits for them.", did.Steps)
	e.Distribution("etcd_debugging_mvcc_db_compaction_total_duration_milliseconds",
		"How long compactions took, the pauses between their steps included.", did.Whole)
	e.Counter("quorate_store_reclaims_total", "How often the store was rewritten because compactions had deleted much of it.",
		float64(did.Reclaims.Load()))
	e.Counter("quorate_store_reclaim_failures_total",
		"How often that failed, so that what was deleted stays on disk for a minute more.", float64(did.Failed.Load()))
}
