package membership_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// Ensure that a job whose newcomer is not started in time takes it back and fails, and that one whose newcomer is up does not.
func TestNext_overdue(t *testing.T) {
	const hour = int64(60 * 60 * 1000)
	for _, tc := range []struct {
		name    string
		within  int64
		waited  int64
		started bool
		want    bool
	}{
		{"within the hour", 0, hour, false, false},
		{"after it", 0, hour + 1, false, true},
		{"as somebody said", 5000, 5001, false, true},
		{"it is up and far behind", 0, 9 * hour, true, false},
	} {
		c := found(t, 3, 0)
		c.config.Learners, c.config.Members = ids{7}, append(c.config.Members, member(7))
		c.seen[7] = &membership.MemberView{State: "probe", Started: tc.started, Active: tc.started, Match: 1}
		job := membership.Job{
			ID: 1, State: membership.StateRunning, Started: 1000, Config: consensus.ConfigID{Index: 3, Term: 1},
			Spec: membership.Spec{Add: []membership.Newcomer{newcomer(7)}, JoinWithinMS: tc.within},
		}
		if !tc.started {
			c.seen[7].Match = 0
		}
		v := c.view()
		job.WaitedMS = tc.waited
		v.Now += 99 * hour // what the clock of another leader would say
		action := membership.Next(&job, v)
		if action.Expired != tc.want || (action.Change != nil) != tc.want {
			t.Errorf("%s: %+v", tc.name, action)
			continue
		}
		if !tc.want {
			continue
		}
		c.propose(action.Change)
		for c.stage != 0 {
			c.tick()
		}
		job.Expired = true
		action = membership.Next(&job, c.view())
		if action.End != membership.StateFailed || !strings.Contains(action.Message, "taken back") || c.config.Contains(7) {
			t.Errorf("%s: it ends as %+v with %v", tc.name, action, c.config.IDs())
		}
	}
}

func TestJob_Passes(t *testing.T) {
	add := []membership.Newcomer{newcomer(7)}
	for _, tc := range []struct {
		name string
		job  membership.Job
		want bool
	}{
		{"another newcomer", membership.Job{State: membership.StateQueued, Spec: membership.Spec{Add: add}}, false},
		{"one that waits too", membership.Job{State: membership.StateRunning, Spec: membership.Spec{Add: add}}, true},
		{"a replacement", membership.Job{State: membership.StateQueued, Spec: membership.Spec{Add: add, Remove: ids{2}}}, true},
		{"an undo", membership.Job{State: membership.StateQueued, Spec: membership.Spec{Remove: ids{7}}}, true},
		{"one that is cancelled", membership.Job{CancelAsked: true, Spec: membership.Spec{Add: add}}, true},
	} {
		if got := tc.job.Passes(); got != tc.want {
			t.Errorf("%s: got %v", tc.name, got)
		}
	}
}
