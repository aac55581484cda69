package membershipapi

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/rpc/metrics"
)

// scrapeTimeout bounds what a scrape waits for. The member leads when it is asked, so it asks itself.
const scrapeTimeout = 100 * time.Millisecond

// Collect shows membership changes and jobs and, on the leader, how the other members are.
func (m *Service) Collect(e *metrics.Emitter) {
	for _, n := range m.options.Cluster.ChangeCounts() {
		e.Counter("quorate_membership_changes_total", "Membership changes that ended, by protocol and outcome.",
			float64(n.Count), "protocol", n.Protocol.String(), "outcome", string(n.Outcome))
	}
	e.Counter("quorate_stale_proposals_total",
		"Commands that were sent again because the configuration had changed meanwhile.",
		float64(m.options.Cluster.StaleProposals()))
	m.collectJobs(e)
	if m.options.Member.Leader() == m.options.Member.ID() {
		m.collectFollowers(e)
	}
}

func (m *Service) collectJobs(e *metrics.Emitter) {
	states := []membership.State{membership.StateQueued, membership.StateRunning, membership.StateDone,
		membership.StateFailed, membership.StateCancelled}
	count := make(map[membership.State]int, len(states))
	for _, job := range m.options.Cluster.Jobs() {
		count[job.State]++
	}
	for _, state := range states {
		e.Gauge("quorate_membership_jobs", "Membership jobs that are remembered, by state.", float64(count[state]),
			"state", string(state))
	}
}

func (m *Service) collectFollowers(e *metrics.Emitter) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	view, _, err := m.options.Cluster.DescribeCluster(ctx)
	if err != nil || view.Leader != m.options.Member.ID() {
		return // it just stopped leading
	}
	for i := range view.Members {
		seen := &view.Members[i]
		peer := seen.ID.String()
		known, _ := view.Config.Member(seen.ID)
		e.Gauge("quorate_member_cordoned", "1 if the member is cordoned: it leaves leadership to other voters.",
			metrics.Bool(known.Cordoned), "peer", peer)
		if seen.ID == view.Leader {
			continue
		}
		e.Gauge("quorate_member_lag_entries", "Entries of the leader's log that the member lacks.",
			float64(view.Last-min(seen.Match, view.Last)), "peer", peer)
		e.Gauge("quorate_member_last_contact_seconds",
			"Since the leader heard the member last; 0 within an election timeout.", float64(seen.SilentMS)/1000, "peer", peer)
		if t := seen.Snapshot; t != nil {
			e.Gauge("quorate_snapshot_transfer_bytes", "Bytes sent of the snapshot that is on its way to the member.",
				float64(t.Sent), "peer", peer)
		}
	}
}
