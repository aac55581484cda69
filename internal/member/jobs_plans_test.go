package member_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
)

// A job that was planned before another change is refused, also when that change was made by a job that has ended, and the
// refusal names the difference.
func TestMember_StartJob_stalePlan(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	first, second := c.others(leader)[0], c.others(leader)[1]
	planned := &membership.Spec{Remove: []consensus.MemberID{first.id}}
	plan, err := leader.Plan(c.ctx, planned)
	if err != nil || len(plan.Blockers) > 0 || len(plan.WaitsFor) > 0 {
		t.Fatalf("the plan %+v, %v", plan, err)
	}
	planned.Expected, planned.After = plan.Config, plan.WaitsFor
	job, err := leader.StartJob(c.ctx, 0, &membership.Spec{Remove: []consensus.MemberID{second.id}})
	if err != nil {
		t.Fatal(err)
	}
	c.await("the end of the other job", inState(job.ID, membership.StateDone), leader)
	for _, asked := range []*node{leader, first} {
		var refused *membership.RefusedError
		_, err := asked.StartJob(c.ctx, 0, planned)
		if !errors.As(err, &refused) || refused.Reason != consensus.ReasonStaleConfig ||
			!strings.Contains(refused.Why, job.ID.String()) {
			t.Errorf("the stale plan: %v (%+v)", err, refused)
		}
	}
	if got := leader.config().Voters; len(got) != 2 {
		t.Errorf("voters %v, want two", got)
	}
}

// A job that was requested between plan and start refuses the start, though it has changed nothing yet; a job that the plan
// showed does not.
func TestMember_StartJob_unseenJob(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	spec := func(id consensus.MemberID) *membership.Spec {
		return &membership.Spec{Demote: []consensus.MemberID{id}}
	}
	first, second := c.others(leader)[0], c.others(leader)[1]
	plan, err := leader.Plan(c.ctx, spec(first.id))
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := leader.StartJob(c.ctx, 0, &membership.Spec{
		Add: []membership.Newcomer{{Name: "new", PeerURLs: []string{c.reserve().url()}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	blind := spec(first.id)
	blind.Expected = plan.Config
	var refused *membership.RefusedError
	if _, err := leader.StartJob(c.ctx, 0, blind); !errors.As(err, &refused) ||
		!strings.Contains(refused.Why, waiting.ID.String()) {
		t.Errorf("a job that the plan knows nothing of: %v", err)
	}
	c.await("the newcomer being waited for", inPhase(waiting.ID, membership.PhaseStart), leader)
	if plan, err = leader.Plan(c.ctx, spec(second.id)); err != nil || len(plan.WaitsFor) != 1 {
		t.Fatalf("the plan tells of %v, %v, want one job", plan.WaitsFor, err)
	}
	told := spec(second.id)
	told.Expected, told.After = plan.Config, plan.WaitsFor
	if _, err := leader.StartJob(c.ctx, 0, told); err != nil {
		t.Errorf("a job that the plan told of: %v", err)
	}
}

// Only one job may replace a member.
func TestMember_StartJob_replacesOnce(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	dead := c.others(leader)[0]
	dead.stop()
	in, other := c.reserve(), c.reserve()
	job, err := leader.StartJob(c.ctx, 0, replace(dead.id, in))
	if err != nil {
		t.Fatal(err)
	}
	again := replace(dead.id, other)
	again.Add[0].Name = "other"
	var blocked *membership.BlockedError
	if _, err := leader.StartJob(c.ctx, 0, again); !errors.As(err, &blocked) || !strings.Contains(err.Error(), job.ID.String()) {
		t.Errorf("while it is being replaced: %v", err)
	}
	if plan, err := leader.Plan(c.ctx, again); err != nil || len(plan.Blockers) == 0 {
		t.Errorf("the plan of it: %+v, %v", plan, err)
	}
	c.await("the newcomer being waited for", inPhase(job.ID, membership.PhaseStart), leader)
	in.launch(job.Spec.Add[0].ID)
	c.await("the end of the job", inState(job.ID, membership.StateDone), leader)
	if _, err := leader.StartJob(c.ctx, 0, again); !errors.As(err, &blocked) || !strings.Contains(err.Error(), "already") {
		t.Errorf("when it is replaced: %v", err)
	}
	if got := leader.config(); len(got.Voters) != 3 || len(got.Members) != 3 {
		t.Errorf("the configuration is %+v", got)
	}
}

// A process that joins does not take the vote of a working member, nor the name of another member.
func TestMember_Join_replacesNoLiveVoter(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	live := c.others(leader)[0]
	c.publish(live, "worn")
	var spec *membership.SpecError
	request := autopilot.JoinRequest{Name: "new", PeerURLs: []string{c.reserve().url()}, Replaces: "worn"}
	if _, err := leader.Join(c.ctx, request); !errors.As(err, &spec) || !strings.Contains(err.Error(), "member replace worn") {
		t.Errorf("in place of a live voter: %v", err)
	}
	request.Name, request.Replaces = "worn", ""
	if _, err := leader.Join(c.ctx, request); !errors.As(err, &spec) || !strings.Contains(err.Error(), live.id.String()) {
		t.Errorf("under the name of another: %v", err)
	}
	if got := leader.config(); len(got.Members) != 3 || len(leader.Jobs()) > 0 {
		t.Errorf("the configuration is %+v with jobs %+v", got, leader.Jobs())
	}
	if owner, taken := leader.NameOwner("worn"); !taken || owner != live.id {
		t.Errorf("the name belongs to %v, %v", owner, taken)
	}
	if owner, taken := live.NameOwner("worn"); taken {
		t.Errorf("to the member itself its name belongs to %v", owner)
	}
}
