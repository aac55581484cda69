package autopilot_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
)

// threeVoters is what leader 1 sees of a healthy cluster.
func threeVoters() *membership.View {
	v := &membership.View{
		Leader: 1, ID: consensus.ConfigID{Index: 10, Term: 2}, Settled: true, TermStarted: true, Last: 100, Strict: true,
		Now: 1_000_000,
	}
	for id := consensus.MemberID(1); id <= 3; id++ {
		v.Config.Voters = append(v.Config.Voters, id)
		v.Config.Members = append(v.Config.Members, consensus.Member{ID: id, PeerURLs: []string{"http://" + id.String()}})
		v.Members = append(v.Members, membership.MemberView{
			ID: id, Started: true, Active: true, CaughtUp: true, Match: 100, State: "replicate",
		})
	}
	return v
}

func removal(id membership.JobID, out consensus.MemberID) autopilot.Row {
	return autopilot.Row{Version: 1, Job: membership.Job{
		ID: id, State: membership.StateQueued, Created: int64(id), Spec: membership.Spec{Remove: []consensus.MemberID{out}},
	}}
}

// next asks for steps, and takes what is to be written as written, until a step is something else.
func next(t *testing.T, d *autopilot.Driver, rows []autopilot.Row, v *membership.View) autopilot.Step {
	t.Helper()
	for range 10 {
		step := d.Next(time.UnixMilli(v.Now), rows, v)
		if step.Write == nil {
			return step
		}
		for i := range rows {
			if rows[i].ID == step.Write.Job.ID && rows[i].Version == step.Write.Version {
				rows[i] = autopilot.Row{Job: step.Write.Job, Version: step.Write.Version + 1}
			}
		}
	}
	t.Fatal("there is always something to write")
	return autopilot.Step{}
}

// Ensure that a job is written as running before its first change is proposed, and that the change names the configuration.
func TestDriver_Next_writesFirst(t *testing.T) {
	var d autopilot.Driver
	rows, v := []autopilot.Row{removal(1, 3), removal(2, 2)}, threeVoters()
	first := d.Next(time.UnixMilli(v.Now), rows, v)
	if first.Write == nil || first.Change != nil || !first.Moved || first.Write.Job.State != membership.StateRunning {
		t.Fatalf("the first step is %+v", first)
	}
	step := next(t, &d, rows, v)
	if step.Change == nil || step.Row.ID != 1 || step.Change.Expected != v.ID {
		t.Errorf("then %+v", step)
	}
	if rows[1].State != membership.StateQueued {
		t.Errorf("the second job is %s before the first has ended", rows[1].State)
	}
}

// Ensure that the age of a job is what leaders saw of it: clocks of two leaders are never compared, and what a leader wrote is known
// to the next one.
func TestDriver_Next_clocksOfLeaders(t *testing.T) {
	const hour = int64(60 * 60 * 1000)
	var first autopilot.Driver
	v := threeVoters()
	row := removal(1, 3)
	row.Spec = membership.Spec{Add: []membership.Newcomer{{ID: 7, PeerURLs: []string{"http://7"}, Learner: true}}}
	rows := []autopilot.Row{row}
	if step := next(t, &first, rows, v); step.Change == nil {
		t.Fatalf("the first step is %+v", step)
	}
	v.Config.Learners = []consensus.MemberID{7}
	v.Config.Members = append(v.Config.Members, consensus.Member{ID: 7, PeerURLs: []string{"http://7"}})
	v.Members = append(v.Members, membership.MemberView{ID: 7, State: "probe"})
	next(t, &first, rows, v)
	if rows[0].State != membership.StateRunning {
		t.Fatalf("the job is %s: %s", rows[0].State, rows[0].Message)
	}
	var ahead autopilot.Driver // a leader whose clock is a day ahead
	v.Now += 24 * hour
	if next(t, &ahead, rows, v); rows[0].Expired || rows[0].State != membership.StateRunning {
		t.Fatalf("a job that is seconds old is %s by another clock: %s", rows[0].State, rows[0].Message)
	}
	v.Now += hour * 7 / 8
	if next(t, &ahead, rows, v); rows[0].Expired || rows[0].WaitedMS < hour/2 {
		t.Fatalf("after most of an hour it says %d ms, expired %v", rows[0].WaitedMS, rows[0].Expired)
	}
	var behind autopilot.Driver
	v.Now -= 48 * hour
	if next(t, &behind, rows, v); rows[0].Expired {
		t.Fatal("it expires by a clock that is behind")
	}
	v.Now += hour / 4
	if next(t, &behind, rows, v); !rows[0].Expired {
		t.Errorf("after more than an hour under two leaders the job is %s: %s", rows[0].State, rows[0].Message)
	}
}

// Ensure that a change that is refused for good ends its job, unless the configuration or the row has changed since.
func TestDriver_Changed_refused(t *testing.T) {
	for _, tc := range []struct {
		name   string
		reason consensus.RefusalReason
		since  func(rows []autopilot.Row, v *membership.View)
		again  bool
		want   membership.State
	}{
		{"for good", consensus.ReasonProtocol, func([]autopilot.Row, *membership.View) {}, true, membership.StateFailed},
		{"another configuration", consensus.ReasonProtocol, func(_ []autopilot.Row, v *membership.View) { v.ID.Index++ }, true,
			membership.StateRunning},
		{"somebody cancels", consensus.ReasonProtocol, func(rows []autopilot.Row, _ *membership.View) { rows[0].Version++ }, true,
			membership.StateRunning},
		{"for now", consensus.ReasonQuorumLost, func([]autopilot.Row, *membership.View) {}, false, membership.StateRunning},
		{"in the past", consensus.ReasonStaleConfig, func([]autopilot.Row, *membership.View) {}, false, membership.StateRunning},
	} {
		var d autopilot.Driver
		rows, v := []autopilot.Row{removal(1, 3)}, threeVoters()
		step := next(t, &d, rows, v)
		if again := d.Changed(&step, &membership.RefusedError{Reason: tc.reason}); again != tc.again {
			t.Errorf("%s: look again at once: %v, want %v", tc.name, again, tc.again)
		}
		tc.since(rows, v)
		next(t, &d, rows, v)
		if rows[0].State != tc.want {
			t.Errorf("%s: the job is %s, want %s", tc.name, rows[0].State, tc.want)
		}
	}
}
