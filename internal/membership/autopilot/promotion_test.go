package autopilot_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
)

// Ensure that a learner is promoted that is to vote, was heard and is near, and that no job has plans for.
func TestPromotable(t *testing.T) {
	near := raft.PeerProgress{ID: 4, RecentActive: true, Match: 4500}
	joins := consensus.Member{ID: 4, PeerURLs: []string{"http://4"}, Promote: true}
	job := func(state membership.State, spec membership.Spec) []autopilot.Row {
		return []autopilot.Row{{Job: membership.Job{ID: 1, State: state, Spec: spec}}}
	}
	adds := membership.Spec{Add: []membership.Newcomer{{PeerURLs: []string{"http://4"}}}}
	for _, tc := range []struct {
		name     string
		member   consensus.Member
		progress raft.PeerProgress
		rows     []autopilot.Row
		want     bool
	}{
		{"near", joins, near, nil, true},
		{"far behind", joins, raft.PeerProgress{ID: 4, RecentActive: true, Match: 3999}, nil, false},
		{"silent", joins, raft.PeerProgress{ID: 4, Match: 5000}, nil, false},
		{"never heard", joins, raft.PeerProgress{ID: 4, RecentActive: true}, nil, false},
		{"to stay a learner", consensus.Member{ID: 4, PeerURLs: []string{"http://4"}}, near, nil, false},
		{"a job adds it", joins, near, job(membership.StateRunning, adds), false},
		{"a job removes it", joins, near, job(membership.StateQueued, membership.Spec{Remove: []consensus.MemberID{4}}), false},
		{"such a job has ended", joins, near, job(membership.StateFailed, adds), true},
	} {
		config := consensus.Config{
			Voters: []consensus.MemberID{1}, Learners: []consensus.MemberID{4}, Members: []consensus.Member{{ID: 1}, tc.member},
		}
		leader := raft.Status{LastIndex: 5000, Progress: []raft.PeerProgress{tc.progress}}
		if got := autopilot.Promotable(&config, &leader, tc.rows); slices.Contains(got, 4) != tc.want {
			t.Errorf("%s: %v, want it: %v", tc.name, got, tc.want)
		}
	}
}

// Ensure that a session is retired only after it was seen for long enough without a break.
func TestRemovedSessions_Ripe(t *testing.T) {
	var r autopilot.RemovedSessions
	one, two := consensus.SessionID{Member: 1, Number: 7}, consensus.SessionID{Member: 2, Number: 7}
	for _, tc := range []struct {
		at   int64
		open []consensus.SessionID
		want consensus.SessionID
	}{
		{0, []consensus.SessionID{one}, consensus.SessionID{}},
		{9, []consensus.SessionID{one, two}, consensus.SessionID{}},
		{10, []consensus.SessionID{one, two}, one},
		{11, []consensus.SessionID{two}, consensus.SessionID{}},
		{20, []consensus.SessionID{one, two}, two},
		{21, []consensus.SessionID{one}, consensus.SessionID{}},
	} {
		got, found := r.Ripe(tc.open, time.UnixMilli(tc.at), 10*time.Millisecond)
		if got != tc.want || found != (tc.want != consensus.SessionID{}) {
			t.Errorf("at %d: %v, %v, want %v", tc.at, got, found, tc.want)
		}
	}
}
