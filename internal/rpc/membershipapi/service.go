package membershipapi

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/changecount"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/rpc/validate"
)

// Cluster is what the service asks of a member about its cluster: *member.Member.
// The member asks the leader for what only the leader knows or does.
type Cluster interface {
	DescribeCluster(ctx context.Context) (membership.View, consensus.Term, error)
	Plan(ctx context.Context, spec *membership.Spec) (membership.Plan, error)
	// StartJob draws an id if it is given none.
	StartJob(ctx context.Context, id membership.JobID, spec *membership.Spec) (membership.Job, error)
	CancelJob(ctx context.Context, id membership.JobID) (membership.Job, error)
	Join(ctx context.Context, request autopilot.JoinRequest) (autopilot.JoinAnswer, error)

	// Jobs are as applied here; JobsChanged is closed when the next change of them is.
	Jobs() []membership.Job
	JobsChanged() <-chan struct{}
	ConfigChanged() <-chan struct{}

	ChangeCounts() []changecount.Count
	StaleProposals() uint64
}

// Member is what the service asks of a member about itself.
type Member interface {
	ID() consensus.MemberID
	EpochName() string // of the epoch of its data
	Term() consensus.Term
	Leader() consensus.MemberID
	LeaderChanged() <-chan struct{}
	Status() raft.Status
	Machine() (machine *apply.Machine, release func())
}

// Options say whose cluster it is.
type Options struct {
	ClusterID uint64
	Member    Member
	Cluster   Cluster
	// StrictReconfig refuses membership changes that would endanger the quorum.
	StrictReconfig bool
	Clock          env.Clock
}

// Service is the native Membership service.
type Service struct {
	quoratepb.UnsafeMembershipServer
	options Options
	poller  *poller
}

// New makes the service of a member.
func New(options Options) *Service {
	return &Service{options: options, poller: newPoller(options)}
}

// Describe tells the configuration in force and how each member is, as the leader sees it.
func (m *Service) Describe(
	ctx context.Context, _ *quoratepb.DescribeRequest,
) (*quoratepb.DescribeResponse, error) {
	view, term, err := m.options.Cluster.DescribeCluster(ctx)
	if err != nil {
		return nil, wireError(err, consensus.ConfigID{})
	}
	return &quoratepb.DescribeResponse{
		Cluster: clusterMessage(&m.options, &view, term, m.options.Cluster.Jobs()),
	}, nil
}

// Plan tells what a change would do. Its obstacles are part of the answer, not an error.
func (m *Service) Plan(
	ctx context.Context, r *quoratepb.ChangeSpec,
) (*quoratepb.PlanResponse, error) {
	spec, err := specOf(r)
	if err != nil {
		return nil, err
	}
	plan, err := m.options.Cluster.Plan(ctx, &spec)
	if err != nil {
		return nil, wireError(err, spec.Expected)
	}
	return planMessage(&plan), nil
}

// Start makes a job of a change.
func (m *Service) Start(ctx context.Context, r *quoratepb.StartRequest) (*quoratepb.Job, error) {
	spec, err := specOf(r.GetSpec())
	if err != nil {
		return nil, err
	}
	job, err := m.options.Cluster.StartJob(ctx, membership.JobID(r.GetRequestId()), &spec)
	if err != nil {
		return nil, wireError(err, spec.Expected)
	}
	return m.jobMessage(&job), nil
}

// ListJobs tells the jobs that this member knows of, oldest first.
func (m *Service) ListJobs(
	context.Context, *quoratepb.ListJobsRequest,
) (*quoratepb.ListJobsResponse, error) {
	return &quoratepb.ListJobsResponse{Jobs: jobMessages(m.options.Cluster.Jobs())}, nil
}

// CancelJob asks the leader to stop a job.
func (m *Service) CancelJob(
	ctx context.Context, r *quoratepb.CancelJobRequest,
) (*quoratepb.Job, error) {
	job, err := m.options.Cluster.CancelJob(ctx, membership.JobID(r.GetId()))
	if err != nil {
		return nil, wireError(err, consensus.ConfigID{})
	}
	return m.jobMessage(&job), nil
}

// jobMessage tells a job that was just written; this member may not have applied it yet.
func (m *Service) jobMessage(job *membership.Job) *quoratepb.Job {
	return jobMessage(job, m.options.Cluster.Jobs())
}

// Join adds the caller as a member-to-be.
func (m *Service) Join(ctx context.Context, r *quoratepb.JoinRequest) (*quoratepb.JoinResponse, error) {
	if want := r.GetClusterId(); want != 0 && want != m.options.ClusterID {
		return nil, status.Errorf(codes.FailedPrecondition,
			"this is a member of cluster %x, and the one to join is %x", m.options.ClusterID, want)
	}
	urls, err := validate.PeerURLs(r.GetPeerUrls())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument,
			fmt.Sprintf("the peer URLs %q do not serve: each is http:// or https://, a host and a port", r.GetPeerUrls()))
	}
	answer, err := m.options.Cluster.Join(ctx, autopilot.JoinRequest{
		Name: r.GetName(), PeerURLs: urls, Learner: r.GetLearner(), Replaces: r.GetReplaces(),
	})
	if err != nil {
		return nil, wireError(err, consensus.ConfigID{})
	}
	config := m.options.Member.Status().Config
	response := &quoratepb.JoinResponse{
		ClusterId: uint64(answer.Cluster), MemberId: uint64(answer.ID), Job: uint64(answer.Job),
	}
	for i := range answer.Members {
		known := &answer.Members[i]
		response.Members = append(response.Members, &quoratepb.Member{
			Id: uint64(known.ID), Name: known.Name, PeerUrls: known.PeerURLs,
			Role: roleOf(&config, known, known.ID == answer.ID && !r.GetLearner()),
		})
	}
	return response, nil
}
