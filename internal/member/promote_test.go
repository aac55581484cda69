package member_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
)

// A newcomer joins by itself, and a job is to put it in the place of a member. It does not become a voter before the job's
// turn, however long that takes: there would be one voter too many, and no newcomer for the place.
func TestMember_StartJob_adoptsNewcomer(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	out, in := c.others(leader)[0], c.reserve()
	answer, err := leader.Join(c.ctx, autopilot.JoinRequest{Name: "new", PeerURLs: []string{in.url()}})
	if err != nil {
		t.Fatal(err)
	}
	before, err := leader.StartJob(c.ctx, 0, &membership.Spec{
		Add: []membership.Newcomer{{Name: "never", PeerURLs: []string{c.reserve().url()}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	job, err := leader.StartJob(c.ctx, 0, replace(out.id, in))
	if err != nil {
		t.Fatal(err)
	}
	in.launch(answer.ID)
	c.put(leader, "k")
	c.await("the newcomer being near enough to vote", func(*node) bool {
		view, _, err := leader.DescribeCluster(c.ctx)
		seen, _ := view.Member(answer.ID)
		return err == nil && seen.CaughtUp
	}, leader)
	if _, err := leader.CancelJob(c.ctx, before.ID); err != nil {
		t.Fatal(err)
	}
	c.await("the end of the job", func(n *node) bool { return n.job(job.ID).State.Ended() }, leader)
	want := slices.DeleteFunc([]consensus.MemberID{1, 2, 3, answer.ID}, func(id consensus.MemberID) bool { return id == out.id })
	slices.Sort(want)
	if got := leader.config(); leader.job(job.ID).State != membership.StateDone || !slices.Equal(got.Voters, want) {
		t.Errorf("the job %+v ended with the voters %v, want %v", leader.job(job.ID), got.Voters, want)
	}
}
