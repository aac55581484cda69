package lockapi

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/api/v3electionpb"
)

// Election is etcd's Election service.
type Election struct {
	v3electionpb.UnsafeElectionServer
	store *Store
}

// NewElection makes the service.
func NewElection(store *Store) *Election { return &Election{store: store} }

// The texts are etcd's.
var (
	errMissingLeaderKey = errors.New(`"leader" field must be provided`)
	errNotLeader        = errors.New("election: not leader")
	errNoLeader         = errors.New("election: no leader")
)

// Campaign waits until the caller is elected.
func (e *Election) Campaign(
	ctx context.Context, r *v3electionpb.CampaignRequest,
) (*v3electionpb.CampaignResponse, error) {
	response, err := e.campaign(asCaller(ctx), r)
	return response, etcdsWay(err)
}

func (e *Election) campaign(
	ctx context.Context, r *v3electionpb.CampaignRequest,
) (*v3electionpb.CampaignResponse, error) {
	lease, err := e.store.leaseOr(ctx, r.Lease)
	if err != nil {
		return nil, err
	}
	key := keyOf(r.Name, lease)
	queued, err := e.store.kv.Txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{createdAt(key, 0)},
		Success: []*pb.RequestOp{putOp(&pb.PutRequest{Key: key, Value: r.Value, Lease: lease})},
		Failure: []*pb.RequestOp{rangeOp(&pb.RangeRequest{Key: key})},
	})
	if err != nil {
		return nil, err
	}
	header := queued.Header
	candidate := &v3electionpb.LeaderKey{Name: r.Name, Key: key, Rev: header.Revision, Lease: lease}
	if !queued.Succeeded { // the same lease campaigns already
		own := queued.Responses[0].GetResponseRange().Kvs[0]
		candidate.Rev = own.CreateRevision
		other := string(own.Value) != string(r.Value)
		queued, own = nil, nil // their value may be large, and the wait long
		if other {
			if _, err := e.proclaim(ctx, candidate, r.Value); err != nil {
				_, _ = e.resign(ctx, candidate) // why it cannot campaign matters more
				return nil, err
			}
		}
	}
	err = e.store.awaitTurn(ctx, r.Name, candidate.Rev-1, len(r.Name)+len(r.Value))
	if err == nil {
		err = e.stands(ctx, candidate)
	}
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, errTooManyWaiting) {
			after, cancel := afterwards(ctx)
			defer cancel()
			_, _ = e.resign(after, candidate) // if it fails, the end of the lease does it
		}
		return nil, err
	}
	return &v3electionpb.CampaignResponse{Header: header, Leader: candidate}, nil
}

// stands fails unless a candidate's key is there still. etcd does not look, and calls a candidate leader whose lease has ended
// while it waited.
func (e *Election) stands(ctx context.Context, candidate *v3electionpb.LeaderKey) error {
	own, err := e.store.kv.Range(ctx, &pb.RangeRequest{
		Key: candidate.Key, MinCreateRevision: candidate.Rev, MaxCreateRevision: candidate.Rev, KeysOnly: true,
	})
	if err == nil && len(own.Kvs) == 0 {
		err = errNotLeader
	}
	return err
}

// Proclaim replaces the value of a leader.
func (e *Election) Proclaim(
	ctx context.Context, r *v3electionpb.ProclaimRequest,
) (*v3electionpb.ProclaimResponse, error) {
	if r.Leader == nil {
		return nil, etcdsWay(errMissingLeaderKey)
	}
	ctx = asCaller(ctx)
	lease, err := e.store.leaseOr(ctx, r.Leader.Lease)
	if err != nil {
		return nil, etcdsWay(err)
	}
	header, err := e.proclaim(ctx, &v3electionpb.LeaderKey{Key: r.Leader.Key, Rev: r.Leader.Rev, Lease: lease}, r.Value)
	if err != nil {
		return nil, etcdsWay(err)
	}
	return &v3electionpb.ProclaimResponse{Header: header}, nil
}

func (e *Election) proclaim(
	ctx context.Context, leader *v3electionpb.LeaderKey, value []byte,
) (*pb.ResponseHeader, error) {
	response, err := e.store.kv.Txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{createdAt(leader.Key, leader.Rev)},
		Success: []*pb.RequestOp{putOp(&pb.PutRequest{Key: leader.Key, Value: value, Lease: leader.Lease})},
	})
	if err == nil && !response.Succeeded {
		err = errNotLeader
	}
	return response.GetHeader(), err
}

// Leader returns the current leader.
func (e *Election) Leader(
	ctx context.Context, r *v3electionpb.LeaderRequest,
) (*v3electionpb.LeaderResponse, error) {
	found, err := e.store.kv.Range(asCaller(ctx), first(r.Name))
	if err == nil && len(found.Kvs) == 0 {
		err = errNoLeader
	}
	if err != nil {
		return nil, etcdsWay(err)
	}
	return &v3electionpb.LeaderResponse{Header: found.Header, Kv: found.Kvs[0]}, nil
}

// Resign gives leadership, or the candidacy, up.
func (e *Election) Resign(
	ctx context.Context, r *v3electionpb.ResignRequest,
) (*v3electionpb.ResignResponse, error) {
	if r.Leader == nil {
		return nil, etcdsWay(errMissingLeaderKey)
	}
	header, err := e.resign(asCaller(ctx), r.Leader)
	if err != nil {
		return nil, etcdsWay(err)
	}
	return &v3electionpb.ResignResponse{Header: header}, nil
}

// resign deletes a candidate's key, unless it is another one's by now.
func (e *Election) resign(ctx context.Context, leader *v3electionpb.LeaderKey) (*pb.ResponseHeader, error) {
	response, err := e.store.kv.Txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{createdAt(leader.Key, leader.Rev)}, Success: []*pb.RequestOp{deleteOp(leader.Key)},
	})
	return response.GetHeader(), err
}

// Observe streams what leaders proclaim.
func (e *Election) Observe(
	r *v3electionpb.LeaderRequest, stream grpc.ServerStreamingServer[v3electionpb.LeaderResponse],
) error {
	ctx := asCaller(stream.Context())
	for {
		leader, err := e.leaderOrNext(ctx, r.Name)
		if err == nil {
			err = e.follow(ctx, leader, stream.Send)
		}
		if err != nil && !errors.Is(err, errOvertaken) {
			return err
		}
	}
}

// leaderOrNext returns the current leader, or the next one if there is none.
func (e *Election) leaderOrNext(ctx context.Context, name []byte) (*v3electionpb.LeaderResponse, error) {
	found, err := e.store.kv.Range(ctx, first(name))
	if err != nil {
		return nil, err
	}
	if len(found.Kvs) > 0 {
		return &v3electionpb.LeaderResponse{Header: found.Header, Kv: found.Kvs[0]}, nil
	}
	all := ofName(new(pb.RangeRequest), name)
	next := new(v3electionpb.LeaderResponse)
	err = e.store.events(ctx, &pb.WatchCreateRequest{
		Key: all.Key, RangeEnd: all.RangeEnd, StartRevision: found.Header.Revision + 1,
		Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NODELETE},
	}, func(r *pb.WatchResponse) (bool, error) {
		for _, event := range r.Events {
			next.Header, next.Kv = r.Header, event.Kv // the first: those after it wait for their turn
			next.Header.Revision = event.Kv.ModRevision
			return true, nil
		}
		return false, nil
	})
	return next, err
}

// follow sends what a leader proclaims until its key is gone.
func (e *Election) follow(
	ctx context.Context, leader *v3electionpb.LeaderResponse, send func(*v3electionpb.LeaderResponse) error,
) error {
	if err := send(leader); err != nil {
		return err
	}
	watch := &pb.WatchCreateRequest{Key: leader.Kv.Key, StartRevision: leader.Header.Revision + 1}
	return e.store.events(ctx, watch, func(r *pb.WatchResponse) (bool, error) {
		for _, event := range r.Events {
			if isDeletion(event) {
				return true, nil
			}
			if err := send(&v3electionpb.LeaderResponse{Header: r.Header, Kv: event.Kv}); err != nil {
				return false, err
			}
		}
		return false, nil
	})
}
