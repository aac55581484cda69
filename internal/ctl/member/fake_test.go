package member_test

import (
	"context"
	"net"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// fakeCluster serves the membership API with answers from a script.
type fakeCluster struct {
	quoratepb.UnimplementedMembershipServer
	pb.UnimplementedClusterServer

	mu      sync.Mutex
	address string
	server  *grpc.Server

	cluster  *quoratepb.Cluster
	plan     *quoratepb.PlanResponse
	job      *quoratepb.Job // that Start and CancelJob answer
	jobs     []*quoratepb.Job
	refusals []error       // the next requests are refused so
	streams  []fakeStream  // one for each call of Watch; the last again and again
	watched  chan struct{} // closed when the last stream has played all of its events

	planned []*quoratepb.ChangeSpec
	started []*quoratepb.StartRequest
	// afterStart is called when a job was started, if it is set.
	afterStart func()
}

// fakeStream is what one call of Watch plays. It ends with err or, without one, with the caller.
type fakeStream struct {
	events []*quoratepb.Event
	err    error
}

func startCluster(t *testing.T) *fakeCluster {
	t.Helper()
	f := &fakeCluster{watched: make(chan struct{}), cluster: threeMembers(), plan: replacePlan(),
		job: &quoratepb.Job{Id: 0x3f2a, State: "queued", Spec: &quoratepb.ChangeSpec{Kind: "replace", Remove: []uint64{0xa2},
			Add: []*quoratepb.Newcomer{{Name: "m4", PeerUrls: []string{"http://10.0.4.9:2380"}}}},
			Phases: []string{"join", "start", "swap"}, Newcomers: []uint64{0xa4}, CreatedMs: 1_000_000}}
	f.serve(t, "127.0.0.1:0")
	return f
}

// serve starts answering at an address; again, after a stop.
func (f *fakeCluster) serve(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	f.mu.Lock()
	f.address, f.server = l.Addr().String(), server
	f.mu.Unlock()
	quoratepb.RegisterMembershipServer(server, f)
	pb.RegisterClusterServer(server, f)
	go server.Serve(l)
	t.Cleanup(server.Stop)
}

func (f *fakeCluster) run(t *testing.T, args ...string) ctltest.Result {
	t.Helper()
	return ctltest.RunAt(t, f.address, args...)
}

func (f *fakeCluster) refusal() error {
	if len(f.refusals) == 0 {
		return nil
	}
	err := f.refusals[0]
	f.refusals = f.refusals[1:]
	return err
}

func (f *fakeCluster) Describe(context.Context, *quoratepb.DescribeRequest) (*quoratepb.DescribeResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &quoratepb.DescribeResponse{Cluster: f.cluster}, f.refusal()
}

// MemberList answers only who is content with what this member knows, as without a leader.
func (f *fakeCluster) MemberList(_ context.Context, r *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	if r.Linearizable {
		return nil, status.Error(codes.Unavailable, "etcdserver: no leader")
	}
	return &pb.MemberListResponse{Header: &pb.ResponseHeader{ClusterId: 0x1f}, Members: []*pb.Member{{ID: 0xa1, Name: "m1"}}}, nil
}

func (f *fakeCluster) Plan(_ context.Context, spec *quoratepb.ChangeSpec) (*quoratepb.PlanResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.planned = append(f.planned, spec)
	return f.plan, nil
}

func (f *fakeCluster) Start(_ context.Context, r *quoratepb.StartRequest) (*quoratepb.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = append(f.started, r)
	if f.afterStart != nil {
		f.afterStart()
	}
	return f.job, f.refusal()
}

func (f *fakeCluster) ListJobs(context.Context, *quoratepb.ListJobsRequest) (*quoratepb.ListJobsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &quoratepb.ListJobsResponse{Jobs: f.jobs}, nil
}

func (f *fakeCluster) CancelJob(_ context.Context, r *quoratepb.CancelJobRequest) (*quoratepb.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Id != f.job.Id {
		return nil, status.Error(codes.NotFound, "no such job")
	}
	return f.job, f.refusal()
}

func (f *fakeCluster) Watch(_ *quoratepb.WatchRequest, stream grpc.ServerStreamingServer[quoratepb.Event]) error {
	f.mu.Lock()
	script := f.streams[0]
	last := len(f.streams) == 1
	if !last {
		f.streams = f.streams[1:]
	}
	f.mu.Unlock()
	for _, event := range script.events {
		if err := stream.Send(event); err != nil {
			return err
		}
	}
	if last {
		f.mu.Lock()
		select {
		case <-f.watched:
		default:
			close(f.watched)
		}
		f.mu.Unlock()
	}
	if script.err != nil {
		return script.err
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

// threeMembers is a cluster of which m2 is silent.
func threeMembers() *quoratepb.Cluster {
	member := func(id uint64, name, host string) *quoratepb.Member {
		return &quoratepb.Member{Id: id, Name: name, Role: quoratepb.Role_ROLE_VOTER, Started: true, Active: true,
			PeerUrls: []string{"http://" + host + ":2380"}, ClientUrls: []string{"http://" + host + ":2379"}, State: "replicate"}
	}
	m1, m2, m3 := member(0xa1, "m1", "10.0.4.1"), member(0xa2, "m2", "10.0.4.2"), member(0xa3, "m3", "10.0.4.3")
	m1.Leader, m1.State = true, ""
	m2.Active, m2.SilentMs, m2.Lag, m2.State = false, 432_000, 18_240, "probe"
	m3.Lag = 2
	return &quoratepb.Cluster{ClusterId: 0x1f, Config: &quoratepb.ConfigID{Index: 41, Term: 7}, Protocol: "joint-early",
		Settled: true, Leader: 0xa1, Term: 7, LastIndex: 90_000, Strength: strength(3, 2, 0),
		Members: []*quoratepb.Member{m1, m2, m3}}
}

func strength(voters, active, tolerates int32) *quoratepb.Strength {
	return &quoratepb.Strength{Voters: voters, Quorum: voters/2 + 1, Superquorum: voters, Active: active, Tolerates: tolerates}
}

func replacePlan() *quoratepb.PlanResponse {
	during := strength(3, 2, 0)
	during.Outgoing, during.OutgoingQuorum = 3, 2
	return &quoratepb.PlanResponse{Config: &quoratepb.ConfigID{Index: 41, Term: 7}, Leader: 0xa1, Protocol: "joint-early",
		Now: strength(3, 2, 0), Steps: []*quoratepb.PlanStep{
			{Title: "add m4 as a learner", During: strength(3, 2, 0), After: strength(3, 2, 0)},
			{Title: "let m4 catch up", Detail: "stream 3.1 GiB, then the log", During: strength(3, 2, 0), After: strength(3, 2, 0)},
			{Title: "swap m2 for m4 in one joint step", During: during, After: strength(3, 3, 1)},
		}, Warnings: []string{"somebody must start m4"}}
}

// jobEvent tells that a job is in another state or phase.
func (f *fakeCluster) jobEvent(state, phase string, ms int64) *quoratepb.Event {
	job := &quoratepb.Job{Id: f.job.Id, Spec: f.job.Spec, State: state, Phase: phase, Phases: f.job.Phases,
		Newcomers: f.job.Newcomers, CreatedMs: f.job.CreatedMs, StartedMs: f.job.CreatedMs, UpdatedMs: f.job.CreatedMs + ms}
	switch state {
	case "done":
		job.EndedMs, job.Final = job.UpdatedMs, &quoratepb.ConfigID{Index: 44, Term: 7, Stage: 1}
	case "failed", "cancelled":
		job.EndedMs, job.Message = job.UpdatedMs, "m4 was never heard"
	}
	return &quoratepb.Event{Kind: quoratepb.Event_KIND_JOB, Cluster: f.cluster, Jobs: []*quoratepb.Job{job}}
}

// stateOf is the first event of a stream, from what another tells.
func stateOf(e *quoratepb.Event) *quoratepb.Event {
	return &quoratepb.Event{Kind: quoratepb.Event_KIND_STATE, Cluster: e.Cluster, Jobs: e.Jobs}
}

// stale is a refusal because another configuration is in force.
func stale(t *testing.T) error {
	t.Helper()
	s, err := status.New(codes.FailedPrecondition, "another configuration").WithDetails(
		&quoratepb.StaleConfig{Current: &quoratepb.ConfigID{Index: 43, Term: 8}})
	if err != nil {
		t.Fatal(err)
	}
	return s.Err()
}

// attended runs a command for a person who answers its question.
func (f *fakeCluster) attended(t *testing.T, answer string, args ...string) ctltest.Result {
	t.Helper()
	s := ctltest.At(f.address)
	s.Attended = true
	return ctltest.Run(t, t.Context(), s, answer, args...)
}
