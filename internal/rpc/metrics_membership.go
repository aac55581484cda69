package rpc

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/rpc/metrics"
)

// scrapePatience bounds what a scrape waits for. The member leads when it is asked, so it asks itself.
const scrapePatience = 100 * time.Millisecond

// collectMembership shows the configuration in force at this member and, on the leader, how the others are.
func (s *Services) collectMembership(e *metrics.Emitter) {
	o := &s.options
	status := o.Member.Status()
	e.Gauge("quorate_config_index", "Index of the entry that brought the configuration in force.",
		float64(status.ConfigID.Index))
	e.Gauge("quorate_config_joint", "1 while two sets of voters must agree.", metrics.Bool(status.Config.IsJoint()))
	e.Gauge("quorate_config_settled", "1 if no membership change is under way: removed members may be switched off.",
		metrics.Bool(status.ConfigSettled))
	e.Gauge("quorate_config_voters", "Voters of the configuration in force; while joint, of the new set.",
		float64(len(status.Config.Voters)))
	e.Gauge("quorate_config_learners", "Learners of the configuration in force.", float64(len(status.Config.Learners)))
	if o.Membership == nil {
		return
	}
	for _, n := range o.Membership.ChangeCounts() {
		e.Counter("quorate_membership_changes_total", "Membership changes that ended, by protocol and outcome.",
			float64(n.Count), "protocol", n.Protocol.String(), "outcome", string(n.Outcome))
	}
	e.Counter("quorate_stale_proposals_total",
		"Commands that were sent again because the configuration had changed meanwhile.",
		float64(o.Membership.StaleProposals()))
	s.collectJobs(e)
	if o.Member.Leader() == o.Member.ID() {
		s.collectFollowers(e)
	}
}

func (s *Services) collectJobs(e *metrics.Emitter) {
	states := []membership.State{membership.StateQueued, membership.StateRunning, membership.StateDone,
		membership.StateFailed, membership.StateCancelled}
	count := make(map[membership.State]int, len(states))
	for _, job := range s.options.Membership.Jobs() {
		count[job.State]++
	}
	for _, state := range states {
		e.Gauge("quorate_membership_jobs", "Membership jobs that are remembered, by state.", float64(count[state]),
			"state", string(state))
	}
}

func (s *Services) collectFollowers(e *metrics.Emitter) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	view, _, err := s.options.Membership.DescribeCluster(ctx)
	if err != nil || view.Leader != s.options.Member.ID() {
		return // it just stopped leading
	}
	for i := range view.Members {
		m := &view.Members[i]
		peer := m.ID.String()
		known, _ := view.Config.Member(m.ID)
		e.Gauge("quorate_member_cordoned", "1 if the member is cordoned: it leaves leadership to other voters.",
			metrics.Bool(known.Cordoned), "peer", peer)
		if m.ID == view.Leader {
			continue
		}
		e.Gauge("quorate_member_lag_entries", "Entries of the leader's log that the member lacks.",
			float64(view.Last-min(m.Match, view.Last)), "peer", peer)
		e.Gauge("quorate_member_last_contact_seconds",
			"Since the leader heard the member last; 0 within an election timeout.", float64(m.SilentMS)/1000, "peer", peer)
		if t := m.Snapshot; t != nil {
			e.Gauge("quorate_snapshot_transfer_bytes", "Bytes sent of the snapshot that is on its way to the member.",
				float64(t.Sent), "peer", peer)
		}
	}
}
