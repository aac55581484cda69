package observe

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit/trail"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/rpc"
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
	o.Traffic, o.Limits = trafficOf(before, now), limitsOf(before.services.Limits, now.services.Limits)
	o.Process.ProcessorUs = max(0, now.processor-before.processor).Microseconds()
	o.Process.LogLinesDropped = now.linesDropped - before.linesDropped
	for i := range now.sinks {
		s := &now.sinks[i]
		o.Audit = append(o.Audit, &quoratepb.ObservedOutput{Name: s.Name, Required: s.Required, Blocked: s.Blocked,
			Trouble: s.Trouble, Dropped: s.Dropped - before.sinks[i].Dropped, Kind: sinkKind(s), Records: s.Taken,
			Lost: s.Dropped, LateMs: s.Late.Milliseconds(), DeadlineMs: s.Deadline.Milliseconds()})
	}
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

// sinkKind is what an output is: the journal and syslog are called what they are.
func sinkKind(s *trail.SinkStatus) string {
	if s.File {
		return "file"
	}
	if _, _, ok := config.AuditCollector(s.Name); ok {
		return "OTLP collector"
	}
	return s.Name
}

// mostLimits bounds the limits in an observation.
const mostLimits = 16

// limitsOf are the limits that refused something since, or whose quota is nearly used, those with the most first.
func limitsOf(before, now []rpc.LimitTally) (all []*quoratepb.ObservedLimit) {
	refused := make(map[string]uint64, len(before))
	for _, l := range before {
		refused[l.Name] = l.Refused
	}
	for _, l := range now {
		if n := grown(l.Refused, refused[l.Name]); n > 0 || l.Used >= nearlyUsed {
			all = append(all, &quoratepb.ObservedLimit{Name: l.Name, Refused: n, UsedPercent: l.Used, Bound: l.Bound,
				Used: l.Has, Most: l.Most})
		}
	}
	slices.SortStableFunc(all, func(a, b *quoratepb.ObservedLimit) int {
		return cmp.Or(-cmp.Compare(a.UsedPercent/nearlyUsed, b.UsedPercent/nearlyUsed), -cmp.Compare(a.Refused, b.Refused))
	})
	return all[:min(len(all), mostLimits)]
}

// nearlyUsed is how many hundredths of a quota are worth telling.
const nearlyUsed = 90

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
