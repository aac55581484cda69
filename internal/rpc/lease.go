package rpc

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/rpc/etcderr"
)

// leaseService is etcd's Lease service.
type leaseService struct {
	pb.UnsafeLeaseServer
	*shared
}

// LeaseGrant creates a lease. Its TTL is raised to the shortest one allowed.
func (l *leaseService) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	op := &kv.LeaseGrantOp{ID: kv.LeaseID(r.ID), TTLSeconds: max(r.TTL, l.options.minLeaseTTL())}
	for op.ID == 0 {
		op.ID = kv.LeaseID(rand.Int64())
	}
	command := &kv.Command{LeaseGrant: op}
	if err := l.checkQuota(ctx, command); err != nil {
		return nil, err
	}
	if r.TTL > kv.MaxLeaseTTLSeconds {
		return nil, kv.ErrLeaseTTLTooBig
	}
	result, err := l.propose(ctx, command)
	if err != nil {
		return nil, err
	}
	header := l.headerAt(result.Revision).Message()
	response := &pb.LeaseGrantResponse{Header: header, ID: int64(op.ID), TTL: op.TTLSeconds}
	if result.Lease != nil {
		response.TTL = result.Lease.TTLSeconds
	}
	return response, nil
}

// LeaseRevoke ends a lease and deletes its keys.
func (l *leaseService) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	result, err := l.propose(ctx, &kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: kv.LeaseID(r.ID)}})
	if err != nil {
		return nil, err
	}
	return &pb.LeaseRevokeResponse{Header: l.headerAt(result.Revision).Message()}, nil
}

// LeaseTimeToLive tells how long a lease has left; an unknown one has -1, which is not an error.
func (l *leaseService) LeaseTimeToLive(
	ctx context.Context, r *pb.LeaseTimeToLiveRequest,
) (*pb.LeaseTimeToLiveResponse, error) {
	if err := l.access.User(ctx); err != nil {
		return nil, err
	}
	response := &pb.LeaseTimeToLiveResponse{ID: r.ID, TTL: -1}
	remaining, granted, err := l.options.Member.LeaseTimeToLive(ctx, kv.LeaseID(r.ID))
	switch {
	case err == nil:
		response.TTL, response.GrantedTTL = remaining, granted
	case !errors.Is(err, kv.ErrLeaseNotFound):
		return nil, err
	}
	if r.Keys && err == nil {
		// The leader has answered, but the keys are read here, where an older state may be applied.
		if err := l.readIndex(ctx); err != nil {
			return nil, err
		}
	}
	if r.Keys && err == nil {
		if response.Keys, err = l.keys(ctx, kv.LeaseID(r.ID)); err != nil {
			return nil, err
		}
	}
	response.Header = l.headerNow().Message()
	return response, nil
}

// keys returns the keys of a lease to who may read all of them.
func (l *leaseService) keys(ctx context.Context, id kv.LeaseID) ([][]byte, error) {
	machine, release := l.options.Member.Machine()
	keys, _ := machine.Leases().Keys(id)
	release()
	found := make([][]byte, len(keys))
	for i, key := range keys {
		found[i] = []byte(key)
	}
	return found, l.access.ReadKeys(ctx, found)
}

// LeaseLeases lists the leases that this member knows, to who may read the keys of all of them.
func (l *leaseService) LeaseLeases(ctx context.Context, _ *pb.LeaseLeasesRequest) (*pb.LeaseLeasesResponse, error) {
	if err := l.access.User(ctx); err != nil {
		return nil, err
	}
	machine, release := l.options.Member.Machine()
	response := &pb.LeaseLeasesResponse{Header: l.headerAt(machine.Store().Revision()).Message()}
	leases := machine.Leases().Leases(l.options.Clock.Now())
	release()
	free := l.access.Free(ctx) // as of now: the leases were read before
	for _, info := range leases {
		if !free {
			if _, err := l.keys(ctx, info.ID); err != nil {
				return nil, err
			}
		}
		response.Leases = append(response.Leases, &pb.LeaseStatus{ID: int64(info.ID)})
	}
	return response, nil
}

// LeaseKeepAlive answers renewals in the order in which they come.
func (l *leaseService) LeaseKeepAlive(
	stream grpc.BidiStreamingServer[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse],
) error {
	ended := make(chan error, 1)
	go func() { ended <- l.keepAlive(stream) }()
	select {
	case err := <-ended:
		return err
	case <-stream.Context().Done():
		// Returning ends the stream, and with it the receiver's wait.
		return stream.Context().Err()
	}
}

func (l *leaseService) keepAlive(
	stream grpc.BidiStreamingServer[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse],
) error {
	for {
		request, err := stream.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		// The header is made first: its revision must not be newer than the renewal, or a client could see a lease
		// alive at a revision at which it was revoked already.
		response := &pb.LeaseKeepAliveResponse{Header: l.headerNow().Message(), ID: request.ID}
		if err = l.access.Renew(stream.Context(), kv.LeaseID(request.ID)); err == nil {
			response.TTL, err = l.renew(stream.Context(), kv.LeaseID(request.ID))
		}
		if err != nil {
			return etcderr.Wire(err)
		}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
}

// renewAgainAfter is how long a renewal of an expired lease waits for its revocation before it looks again.
const renewAgainAfter = 50 * time.Millisecond

// renew gives the new TTL, zero if there is no such lease. A lease that expired but is not revoked yet makes the
// caller wait: only the revocation decides that it is gone.
func (l *leaseService) renew(ctx context.Context, id kv.LeaseID) (int64, error) {
	for {
		ttl, err := l.options.Member.RenewLease(ctx, id)
		switch {
		case err == nil:
			return ttl, nil
		case errors.Is(err, kv.ErrLeaseNotFound):
			return 0, nil
		case !errors.Is(err, lease.ErrExpired):
			return 0, err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(renewAgainAfter):
		}
	}
}
