package rpc_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/rpc/membershipapi"
)

// One member, on disk and behind a port, through the whole native service: its status, a dry run of a change, the change, and
// the events of a watcher.
func TestMembership_oneMember(t *testing.T) {
	s := serveMember(t, nil)
	ctx := waitContext(t)
	native := quoratepb.NewMembershipClient(s.conn(t))
	described, err := native.Describe(ctx, &quoratepb.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	c := described.Cluster
	if c.ClusterId != uint64(testCluster) || c.Leader != uint64(testMember) || c.Joint || len(c.Members) != 1 ||
		c.Members[0].Role != quoratepb.Role_ROLE_VOTER || !c.Members[0].Started || c.Members[0].Name != "one" ||
		c.Strength.Voters != 1 || c.Strength.Tolerates != 0 {
		t.Errorf("describe: got %v, want one started voter that leads", c)
	}
	events, err := native.Watch(ctx, &quoratepb.WatchRequest{IntervalMs: 100})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := events.Recv(); err != nil || first.Kind != quoratepb.Event_KIND_STATE || len(first.Cluster.Members) != 1 {
		t.Fatalf("watch: got %v, %v; want the state first", first, err)
	}
	spec := &quoratepb.ChangeSpec{Add: []*quoratepb.Newcomer{
		{Name: "learner", PeerUrls: []string{"http://127.0.0.1:23510"}, Learner: true},
	}}
	plan, err := native.Plan(ctx, spec)
	if err != nil || plan.Done || len(plan.Blockers) > 0 || len(plan.Steps) == 0 || plan.Now.Voters != 1 {
		t.Errorf("plan: got %v, %v; want steps and no blocker", plan, err)
	}
	job, err := native.Start(ctx, &quoratepb.StartRequest{RequestId: 77, Spec: spec})
	if err != nil || job.Id != 77 || len(job.Newcomers) != 1 || job.Newcomers[0] == 0 || len(job.Phases) == 0 {
		t.Fatalf("start: got %v, %v; want job 77 with an id for the newcomer", job, err)
	}
	again, err := native.Start(ctx, &quoratepb.StartRequest{Spec: spec})
	if err != nil || again.Id != 77 {
		t.Errorf("the same change again: got %v, %v; want job 77", again, err)
	}
	awaitEvent(t, events, "the job, and the newcomer on its way", func(seen *watched) bool {
		return seen.jobs[77] != nil && seen.kinds[quoratepb.Event_KIND_CONFIG] > 0 && len(seen.cluster.Members) == 2
	})
	cancelled, err := native.CancelJob(ctx, &quoratepb.CancelJobRequest{Id: 77})
	if err != nil || !cancelled.CancelAsked && cancelled.State != "cancelled" {
		t.Errorf("cancel: got %v, %v", cancelled, err)
	}
	awaitEvent(t, events, "the newcomer gone, and the job cancelled", func(seen *watched) bool {
		return seen.jobs[77] != nil && seen.jobs[77].State == "cancelled" && len(seen.cluster.Members) == 1
	})
	listed, err := native.ListJobs(ctx, &quoratepb.ListJobsRequest{})
	if err != nil || len(listed.Jobs) != 1 || listed.Jobs[0].State != "cancelled" {
		t.Errorf("list: got %v, %v; want the cancelled job", listed, err)
	}
	for _, line := range []string{
		`grpc_server_handled_total{grpc_code="OK",grpc_method="Plan",grpc_service="quorate.v1.Membership",grpc_type="unary"} 1`,
		`grpc_server_started_total{grpc_method="Watch",grpc_service="quorate.v1.Membership",grpc_type="server_stream"} 1`,
		`quorate_membership_jobs{state="cancelled"} 1`,
		`quorate_membership_changes_total{outcome="settled",protocol="single"} 2`,
		"quorate_config_voters 1", "quorate_config_learners 0", "quorate_config_joint 0", "quorate_config_settled 1",
		"quorate_stale_proposals_total 0",
	} {
		s.awaitMetric(t, line)
	}
}

// watched is the state reported by a stream of events.
type watched struct {
	cluster *quoratepb.Cluster
	jobs    map[uint64]*quoratepb.Job
	kinds   map[quoratepb.Event_Kind]int
}

// awaitEvent receives events until the state that they reported since the call is as expected.
func awaitEvent(t *testing.T, events quoratepb.Membership_WatchClient, what string, ok func(*watched) bool) {
	t.Helper()
	seen := &watched{jobs: map[uint64]*quoratepb.Job{}, kinds: map[quoratepb.Event_Kind]int{}}
	for {
		event, err := events.Recv()
		if err != nil {
			t.Fatalf("%s: not seen: %v; jobs %v, cluster %v", what, err, seen.jobs, seen.cluster)
		}
		seen.cluster = event.Cluster
		seen.kinds[event.Kind]++
		for _, job := range event.Jobs {
			seen.jobs[job.Id] = job
		}
		if ok(seen) {
			return
		}
	}
}

func TestMembership_refusals(t *testing.T) {
	s := serveMember(t, nil)
	ctx := waitContext(t)
	native := quoratepb.NewMembershipClient(s.conn(t))
	self := uint64(testMember)
	start := func(spec *quoratepb.ChangeSpec) error {
		_, err := native.Start(ctx, &quoratepb.StartRequest{Spec: spec})
		return err
	}
	for _, row := range []struct {
		name string
		call func() error
		code codes.Code
		text string
	}{
		{"removing the last voter is blocked", func() error {
			return start(&quoratepb.ChangeSpec{Remove: []uint64{self}})
		}, codes.FailedPrecondition, "no voter"},
		{"a change of nothing", func() error { return start(nil) }, codes.InvalidArgument, "nothing is asked for"},
		{"a configuration that is not in force", func() error {
			return start(&quoratepb.ChangeSpec{
				Add:      []*quoratepb.Newcomer{{PeerUrls: []string{"http://127.0.0.1:23511"}}},
				Expected: &quoratepb.ConfigID{Index: 999, Term: 1},
			})
		}, codes.FailedPrecondition, "999.1.0"},
		{"a job that nobody knows", func() error {
			_, err := native.CancelJob(ctx, &quoratepb.CancelJobRequest{Id: 5})
			return err
		}, codes.NotFound, "no such membership job"},
		{"joining another cluster", func() error {
			_, err := native.Join(ctx, &quoratepb.JoinRequest{ClusterId: 5, PeerUrls: []string{"http://127.0.0.1:23512"}})
			return err
		}, codes.FailedPrecondition, "cluster c1"},
		{"joining without a URL", func() error {
			_, err := native.Join(ctx, &quoratepb.JoinRequest{Name: "n"})
			return err
		}, codes.InvalidArgument, "peer URLs"},
		{"joining where a member is", func() error {
			_, err := native.Join(ctx, &quoratepb.JoinRequest{PeerUrls: []string{testPeerURL}})
			return err
		}, codes.AlreadyExists, "runs, or was started before"},
	} {
		if err := row.call(); status.Code(err) != row.code || !strings.Contains(status.Convert(err).Message(), row.text) {
			t.Errorf("%s: got %v, want %v that says %q", row.name, err, row.code, row.text)
		}
	}
	_, err := native.Plan(ctx, &quoratepb.ChangeSpec{Remove: []uint64{self}, Expected: &quoratepb.ConfigID{Index: 999}})
	details := status.Convert(err).Details()
	if stale, ok := slices.Concat(details, []any{nil})[0].(*quoratepb.StaleConfig); !ok || stale.Current.GetIndex() == 999 {
		t.Errorf("a stale plan: got %v with the details %v, want the configuration in force", err, details)
	}
}

func TestMembership_Join_again(t *testing.T) {
	s := serveMember(t, nil)
	ctx := waitContext(t)
	native := quoratepb.NewMembershipClient(s.conn(t))
	request := &quoratepb.JoinRequest{
		Name: "two", PeerUrls: []string{"http://127.0.0.1:23513"}, ClusterId: uint64(testCluster),
	}
	first, err := native.Join(ctx, request)
	if err != nil || first.ClusterId != uint64(testCluster) || first.MemberId == 0 || len(first.Members) != 2 {
		t.Fatalf("join: got %v, %v; want an id and both members", first, err)
	}
	for _, m := range first.Members {
		if want := map[bool]quoratepb.Role{true: quoratepb.Role_ROLE_JOINING, false: quoratepb.Role_ROLE_VOTER}; m.Role != want[m.Id == first.MemberId] {
			t.Errorf("member %x: got the role %v", m.Id, m.Role)
		}
	}
	if again, err := native.Join(ctx, request); err != nil || again.MemberId != first.MemberId {
		t.Errorf("join again: got %v, %v; want the same id", again, err)
	}
}

// askedMembership answers for the leader and counts its calls.
type askedMembership struct {
	membershipapi.Cluster
	asked int
}

func (a *askedMembership) DescribeCluster(context.Context) (membership.View, consensus.Term, error) {
	a.asked++
	return membership.View{Leader: 2}, 7, nil
}

func (a *askedMembership) Plan(context.Context, *membership.Spec) (membership.Plan, error) {
	return membership.Plan{}, member.ErrNoLeader
}
func (a *askedMembership) Jobs() []membership.Job         { return nil }
func (a *askedMembership) JobsChanged() <-chan struct{}   { return nil }
func (a *askedMembership) ConfigChanged() <-chan struct{} { return nil }

// A learner refuses etcd's calls; the native membership service serves at it as at every other member.
func TestMembership_atALearner(t *testing.T) {
	backend := newMachineBackend(t)
	backend.learner = true
	s := serve(t, backend, func(o *rpcOptions) { o.Membership = &askedMembership{} })
	ctx := waitContext(t)
	native := quoratepb.NewMembershipClient(s.conn(t))
	if r, err := native.Describe(ctx, &quoratepb.DescribeRequest{}); err != nil || r.Cluster.Leader != 2 {
		t.Errorf("describe: got %v, %v; want the leader's answer", r, err)
	}
	if _, err := native.ListJobs(ctx, &quoratepb.ListJobsRequest{}); err != nil {
		t.Errorf("list: %v", err)
	}
	events, err := native.Watch(ctx, &quoratepb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if event, err := events.Recv(); err != nil || event.Cluster.Leader != 2 {
		t.Errorf("watch: got %v, %v; want the state", event, err)
	}
	if _, err := native.Plan(ctx, &quoratepb.ChangeSpec{Remove: []uint64{1}}); status.Code(err) != codes.Unavailable {
		t.Errorf("plan without a leader: got %v, want %v", err, codes.Unavailable)
	}
}

// Without a member's membership the service does not exist, and nothing else changes.
func TestMembership_leftOut(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	native := quoratepb.NewMembershipClient(s.conn(t))
	if _, err := native.Describe(waitContext(t), &quoratepb.DescribeRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v, want %v", err, codes.Unimplemented)
	}
	if code, body := s.get(t, "/metrics"); code != http.StatusOK || !strings.Contains(body, "quorate_config_voters 1\n") ||
		strings.Contains(body, "quorate_membership_jobs") {
		t.Errorf("metrics: got %d %s", code, body)
	}
}
