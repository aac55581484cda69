package observe

import (
	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
)

// fillWindow tells what happened since a tally of a minute ago.
func fillWindow(o *quoratepb.Observation, before, now *tallies) {
	o.WindowMs = now.at.Sub(before.at).Milliseconds()
	o.Core.Committed, o.Core.LateHeartbeats = grown(now.commit, before.commit), now.late-before.late
	o.Core.Withheld = now.withheld - before.withheld
	syncs, mean, p99 := now.syncs.since(before.syncs)
	o.Disk.Syncs, o.Disk.SyncMeanUs, o.Disk.SyncP99Us = syncs, mean.Microseconds(), p99.Microseconds()
	applies, mean, p99 := now.applies.since(before.applies)
	o.Store.Applies, o.Store.ApplyMeanUs, o.Store.ApplyP99Us = applies, mean.Microseconds(), p99.Microseconds()
	o.Store.Stalls = grown(now.stalls, before.stalls)
	work := o.Work
	work.Puts, work.PutBytes = now.puts-before.puts, now.putBytes-before.putBytes
	work.Granted, work.Revoked = now.granted-before.granted, now.revoked-before.revoked
	work.StoodMs = int64(now.stoodMS - before.stoodMS)
	work.Writes = now.services.Writes - before.services.Writes
	if work.Writes > 0 {
		work.WriteMeanUs = (now.services.WritesTook - before.services.WritesTook).Microseconds() / int64(work.Writes)
	}
	work.FailedProposals = now.services.FailedProposals - before.services.FailedProposals
	work.ConnectionsRefused = now.connectionsRefused - before.connectionsRefused
	work.CallsRefused = grown(now.services.CallsRefused, before.services.CallsRefused)
	o.Traffic = trafficOf(before, now)
	o.Process.ProcessorUs = max(0, now.processor-before.processor).Microseconds()
	o.Process.LogLinesDropped = now.linesDropped - before.linesDropped
	for _, p := range o.Peers {
		id := consensus.MemberID(p.Id)
		was, is := before.peers[id], now.peers[id]
		p.Received, p.Sent = grown(is.Received.Messages, was.Received.Messages), grown(is.Sent.Messages, was.Sent.Messages)
		p.Losses, p.Failures = grown(is.Losses, was.Losses), grown(is.Failures, was.Failures)
		p.Dropped, p.Gained = grown(is.Dropped, was.Dropped), grown(is.match, was.match)
		if trips := grown(is.RoundTrips.Count, was.RoundTrips.Count); trips > 0 {
			p.RoundTripUs = max(0, (is.RoundTrips.Sum-was.RoundTrips.Sum).Microseconds()/int64(trips))
		}
	}
}

// fillHistory tells of what is rare, since the oldest tally.
func fillHistory(o *quoratepb.Observation, before, now *tallies) {
	o.HistoryMs = now.at.Sub(before.at).Milliseconds()
	o.Core.LeaderChanges = now.services.LeaderChanges - before.services.LeaderChanges
	o.Core.Outrun = grown(now.outrun, before.outrun)
	o.Store.ReclaimFailures = now.reclaimFailures - before.reclaimFailures
	for _, p := range o.Peers {
		id := consensus.MemberID(p.Id)
		p.Snapshots = grown(now.peers[id].Snapshots, before.peers[id].Snapshots)
	}
}
