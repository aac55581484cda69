package member_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// A newcomer that is never started blocks neither the replacement of a dead voter nor the command that removes the newcomer
// again.
func TestMember_StartJob_passesNewcomerThatNeverStarts(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	dead, in := c.others(leader)[0], c.reserve()
	never, err := leader.StartJob(c.ctx, 0, &membership.Spec{
		Add: []membership.Newcomer{{Name: "never", PeerURLs: []string{c.reserve().url()}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.await("the newcomer being waited for", inPhase(never.ID, membership.PhaseStart), leader)
	dead.stop()
	job, err := leader.StartJob(c.ctx, 0, replace(dead.id, in))
	if err != nil {
		t.Fatal(err)
	}
	c.await("the successor being waited for", inPhase(job.ID, membership.PhaseStart), leader)
	in.launch(job.Spec.Add[0].ID)
	c.await("the end of the replacement", inState(job.ID, membership.StateDone), leader)
	if got := leader.job(never.ID); got.State != membership.StateRunning {
		t.Errorf("the job before it: %+v", got)
	}
	undo, err := leader.StartJob(c.ctx, 0, &membership.Spec{Remove: []consensus.MemberID{never.Spec.Add[0].ID}})
	if err != nil {
		t.Fatal(err)
	}
	c.await("the end of the undo", inState(undo.ID, membership.StateDone), leader)
	c.await("the end of the first job", inState(never.ID, membership.StateFailed), leader)
	if got := leader.config(); len(got.Voters) != 3 || len(got.Members) != 3 || slices.Contains(got.Voters, dead.id) {
		t.Errorf("the configuration is %+v", got)
	}
}

// A newcomer that is not started in time is removed again, and its job says so.
func TestMember_StartJob_expires(t *testing.T) {
	c := startCluster(t, 1)
	leader := c.leader()
	job, err := leader.StartJob(c.ctx, 0, &membership.Spec{
		Add: []membership.Newcomer{{Name: "never", PeerURLs: []string{c.reserve().url()}}}, JoinWithinMS: 5000,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.await("the newcomer being waited for", inPhase(job.ID, membership.PhaseStart), leader)
	c.await("the end of the job", inState(job.ID, membership.StateFailed), leader)
	if got := leader.config(); len(got.Members) != 1 {
		t.Errorf("the configuration is %+v", got)
	}
	if said := leader.job(job.ID).Message; !strings.Contains(said, "taken back") {
		t.Errorf("the job says %q", said)
	}
}
