package member_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/membership"
)

func replace(out consensus.MemberID, in *node) *membership.Spec {
	return &membership.Spec{
		Kind: membership.KindReplace, Remove: []consensus.MemberID{out},
		Add: []membership.Newcomer{{Name: "new", PeerURLs: []string{in.url()}}},
	}
}

func (n *node) job(id membership.JobID) membership.Job {
	for _, job := range n.Jobs() {
		if job.ID == id {
			return job
		}
	}
	return membership.Job{}
}

func inPhase(id membership.JobID, phase membership.Phase) func(*node) bool {
	return func(n *node) bool { return n.job(id).Phase == phase }
}

func inState(id membership.JobID, state membership.State) func(*node) bool {
	return func(n *node) bool { return n.job(id).State == state }
}

// A job begins under one leader and ends under another, because the first leader stops in the middle of it. The removed member
// learns of its removal, and the first leader finds the job as it ended when it comes back.
func TestMember_StartJob_outlivesTheLeader(t *testing.T) {
	c := startCluster(t, 3)
	first := c.leader()
	asking, out := c.others(first)[0], c.others(first)[1]
	in := c.reserve()
	job, err := asking.StartJob(c.ctx, 0, replace(out.id, in))
	if err != nil {
		t.Fatal(err)
	}
	again, err := out.StartJob(c.ctx, 77, replace(out.id, in))
	if err != nil || again.ID != job.ID {
		t.Errorf("asked for again: job %v, %v, want job %v", again.ID, err, job.ID)
	}
	if again, err = asking.StartJob(c.ctx, job.ID, replace(first.id, in)); err != nil || again.ID != job.ID {
		t.Errorf("the same request id: job %v, %v, want job %v", again.ID, err, job.ID)
	}
	c.await("the newcomer being waited for", inPhase(job.ID, membership.PhaseStart), c.running()...)

	first.stop()
	in.launch(job.Spec.Add[0].ID)
	c.await("the end of the job", inState(job.ID, membership.StateDone), asking, in)
	<-out.Failed()
	if err := out.Err(); !errors.Is(err, member.ErrRemoved) {
		t.Errorf("the removed member ended with %v", err)
	}
	want := []consensus.MemberID{first.id, asking.id, in.id}
	slices.Sort(want)
	if got := asking.config(); !slices.Equal(got.Voters, want) || len(got.Learners) > 0 {
		t.Errorf("voters %v and learners %v, want voters %v", got.Voters, got.Learners, want)
	}
	c.put(asking, "k")

	first.start()
	c.await("the end of the job", inState(job.ID, membership.StateDone), first)
	ended, now := first.job(job.ID), asking.config()
	if ended.Final.Index == 0 || ended.Started < ended.Created || ended.Ended < ended.Started || len(now.Outgoing) > 0 {
		t.Errorf("the job ended as %+v in %+v", ended, now)
	}
}

// A job removes the leader that runs it: the leader hands over, and the next one removes it.
func TestMember_StartJob_removesItsLeader(t *testing.T) {
	c := startCluster(t, 3)
	first := c.leader()
	job, err := first.StartJob(c.ctx, 5, &membership.Spec{Remove: []consensus.MemberID{first.id}})
	if err != nil || job.ID != 5 {
		t.Fatalf("job %v, %v", job.ID, err)
	}
	rest := c.others(first)
	c.await("the end of the job", inState(5, membership.StateDone), rest...)
	<-first.Failed()
	if got := rest[0].config().Voters; len(got) != 2 || slices.Contains(got, first.id) {
		t.Errorf("voters %v", got)
	}
	done, err := rest[0].StartJob(c.ctx, 6, &membership.Spec{Remove: []consensus.MemberID{first.id}})
	if err != nil || done.State != membership.StateDone {
		t.Errorf("what is so already: %+v, %v", done, err)
	}
}

func TestMember_StartJob_refusals(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	follower := c.others(leader)[0]
	view, term, err := follower.DescribeCluster(c.ctx)
	if err != nil || view.Leader != leader.id || term == 0 || len(view.Members) != 3 || !view.Settled {
		t.Fatalf("the cluster as %+v in term %d, %v", view, term, err)
	}
	for _, asked := range []*node{leader, follower} {
		var blocked *membership.BlockedError
		taken := replace(1, c.nodes[1])
		if _, err := asked.StartJob(c.ctx, 0, taken); !errors.As(err, &blocked) || len(blocked.Plan.Blockers) == 0 {
			t.Errorf("a URL that is in use: %v", err)
		}
		if plan, err := asked.Plan(c.ctx, taken); err != nil || len(plan.Blockers) == 0 || plan.Leader != leader.id {
			t.Errorf("the plan of it: %+v, %v", plan, err)
		}
		var stale *membership.RefusedError
		old := &membership.Spec{Remove: []consensus.MemberID{3}, Expected: consensus.ConfigID{Index: 1 << 40}}
		if _, err := asked.StartJob(c.ctx, 0, old); !errors.As(err, &stale) ||
			stale.Reason != consensus.ReasonStaleConfig || stale.Config != view.ID {
			t.Errorf("another configuration is expected: %v", err)
		}
		var spec *membership.SpecError
		if _, err := asked.StartJob(c.ctx, 0, &membership.Spec{}); !errors.As(err, &spec) {
			t.Errorf("nothing is asked for: %v", err)
		}
		if _, err := asked.CancelJob(c.ctx, 12345); !errors.Is(err, membership.ErrJobNotFound) {
			t.Errorf("a job that is not: %v", err)
		}
	}
	if jobs := leader.Jobs(); len(jobs) != 0 {
		t.Errorf("refused, yet there: %+v", jobs)
	}
}

// Jobs wait for each other. A waiting job ends at once when it is cancelled, and a running job reverts its changes.
func TestMember_CancelJob(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	follower := c.others(leader)[0]
	first, err := leader.StartJob(c.ctx, 0, &membership.Spec{
		Add: []membership.Newcomer{{Name: "new", PeerURLs: []string{c.reserve().url()}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	second, err := leader.StartJob(c.ctx, 0, &membership.Spec{
		Add: []membership.Newcomer{{Name: "other", PeerURLs: []string{c.reserve().url()}}},
	})
	if err != nil || second.Created <= first.Created {
		t.Fatalf("the second job: %+v, %v", second, err)
	}
	c.await("the newcomer being waited for", inPhase(first.ID, membership.PhaseStart), follower)
	c.await("the second job being queued", inState(second.ID, membership.StateQueued), follower)
	cancelled, err := follower.CancelJob(c.ctx, second.ID)
	if err != nil || cancelled.State != membership.StateCancelled || cancelled.Ended == 0 {
		t.Errorf("a job that waits, cancelled: %+v, %v", cancelled, err)
	}
	if asked, err := follower.CancelJob(c.ctx, first.ID); err != nil || !asked.CancelAsked {
		t.Errorf("a job that runs, cancelled: %+v, %v", asked, err)
	}
	c.await("the end of the job", inState(first.ID, membership.StateCancelled), c.running()...)
	if got := follower.config(); len(got.Members) != 3 || len(got.Voters) != 3 {
		t.Errorf("after all, the configuration is %+v", got)
	}
	if again, err := leader.CancelJob(c.ctx, first.ID); err != nil || again.State != membership.StateCancelled {
		t.Errorf("cancelled again: %+v, %v", again, err)
	}
}

func TestMember_StartJob_boundsTheTable(t *testing.T) {
	c := startCluster(t, 1)
	leader := c.leader()
	blocking, err := leader.StartJob(c.ctx, 0, &membership.Spec{
		Add: []membership.Newcomer{{PeerURLs: []string{c.reserve().url()}, Learner: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	add := func(port string) (membership.Job, error) {
		return leader.StartJob(c.ctx, 0, &membership.Spec{
			Add: []membership.Newcomer{{PeerURLs: []string{"http://127.0.0.1:1" + port}, Learner: true}},
		})
	}
	var waiting []membership.JobID
	for {
		job, err := add(strings.Repeat("1", len(waiting)%4) + string(rune('0'+len(waiting)/4)))
		if errors.Is(err, membership.ErrTooManyJobs) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if waiting = append(waiting, job.ID); len(waiting) > 40 {
			t.Fatal("there is no end of jobs")
		}
	}
	for range 2 {
		for _, id := range waiting {
			if _, err := leader.CancelJob(c.ctx, id); err != nil {
				t.Fatal(err)
			}
		}
		waiting = waiting[:0]
		for len(waiting) < 30 {
			job, err := add(strings.Repeat("1", len(waiting)%4) + string(rune('0'+len(waiting)/4)))
			if err != nil {
				t.Fatal(err)
			}
			waiting = append(waiting, job.ID)
		}
	}
	if jobs := leader.Jobs(); len(jobs) != 1+50+30 || jobs[0].ID != blocking.ID {
		t.Errorf("%d jobs are remembered", len(jobs))
	}
}
