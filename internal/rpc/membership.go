package rpc

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/rpc/validate"
)

// Membership is what the native membership service needs of a member, beyond what all services need: *member.Member.
// What only the leader knows or does, the member asks the leader for.
type Membership interface {
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

	ChangeCounts() []member.ChangeCount
	StaleProposals() uint64
}

// membershipService is the native Membership service.
type membershipService struct {
	quoratepb.UnsafeMembershipServer
	s      *Services
	survey *survey
}

// Describe tells the configuration in force and how each member is, as the leader sees it.
func (m *membershipService) Describe(
	ctx context.Context, _ *quoratepb.DescribeRequest,
) (*quoratepb.DescribeResponse, error) {
	view, term, err := m.s.options.Membership.DescribeCluster(ctx)
	if err != nil {
		return nil, membershipError(err, consensus.ConfigID{})
	}
	return &quoratepb.DescribeResponse{
		Cluster: clusterMessage(m.s.cluster, &view, term, m.s.options.Membership.Jobs()),
	}, nil
}

// Plan tells what a change would do. What stands in its way is part of the answer, not an error.
func (m *membershipService) Plan(
	ctx context.Context, r *quoratepb.ChangeSpec,
) (*quoratepb.PlanResponse, error) {
	spec, err := specOf(r)
	if err != nil {
		return nil, err
	}
	plan, err := m.s.options.Membership.Plan(ctx, &spec)
	if err != nil {
		return nil, membershipError(err, spec.Expected)
	}
	return planMessage(&plan), nil
}

// Start makes a job of a change.
func (m *membershipService) Start(ctx context.Context, r *quoratepb.StartRequest) (*quoratepb.Job, error) {
	spec, err := specOf(r.GetSpec())
	if err != nil {
		return nil, err
	}
	job, err := m.s.options.Membership.StartJob(ctx, membership.JobID(r.GetRequestId()), &spec)
	if err != nil {
		return nil, membershipError(err, spec.Expected)
	}
	return m.jobMessage(&job), nil
}

// ListJobs tells the jobs that this member knows of, oldest first.
func (m *membershipService) ListJobs(
	context.Context, *quoratepb.ListJobsRequest,
) (*quoratepb.ListJobsResponse, error) {
	return &quoratepb.ListJobsResponse{Jobs: jobMessages(m.s.options.Membership.Jobs())}, nil
}

// CancelJob asks the leader to stop a job.
func (m *membershipService) CancelJob(
	ctx context.Context, r *quoratepb.CancelJobRequest,
) (*quoratepb.Job, error) {
	job, err := m.s.options.Membership.CancelJob(ctx, membership.JobID(r.GetId()))
	if err != nil {
		return nil, membershipError(err, consensus.ConfigID{})
	}
	return m.jobMessage(&job), nil
}

// jobMessage tells a job that was just written; this member may not have applied it yet.
func (m *membershipService) jobMessage(job *membership.Job) *quoratepb.Job {
	return jobMessage(job, m.s.options.Membership.Jobs())
}

// Join adds the caller as a member-to-be.
func (m *membershipService) Join(ctx context.Context, r *quoratepb.JoinRequest) (*quoratepb.JoinResponse, error) {
	if want := r.GetClusterId(); want != 0 && want != m.s.cluster {
		return nil, status.Errorf(codes.FailedPrecondition,
			"this is a member of cluster %x, and the one to join is %x", m.s.cluster, want)
	}
	urls, err := validate.PeerURLs(r.GetPeerUrls())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument,
			fmt.Sprintf("the peer URLs %q do not serve: each is http:// or https://, a host and a port", r.GetPeerUrls()))
	}
	answer, err := m.s.options.Membership.Join(ctx, autopilot.JoinRequest{
		Name: r.GetName(), PeerURLs: urls, Learner: r.GetLearner(), Replaces: r.GetReplaces(),
	})
	if err != nil {
		return nil, membershipError(err, consensus.ConfigID{})
	}
	config := m.s.options.Member.Status().Config
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
