package rpc

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// leaseService is etcd's Lease service.
type leaseService struct {
	pb.UnimplementedLeaseServer
	*shared
}

// LeaseGrant creates a lease. Its TTL is raised to the shortest one allowed.
func (l *leaseService) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	op := &kv.LeaseGrantOp{ID: kv.LeaseID(r.ID), TTLSeconds: max(r.TTL, l.options.minLeaseTTL())}
	for op.ID == 0 {
		op.ID = kv.LeaseID(rand.Int64())
	}
	command := &kv.Command{LeaseGrant: op}
	if err := l.checkQuota(ctx, command, patiently); err != nil {
		return nil, err
	}
	if r.TTL > kv.MaxLeaseTTLSeconds {
		return nil, kv.ErrLeaseTTLTooBig
	}
	leave, err := l.admitLease(ctx, command)
	if err != nil {
		return nil, err
	}
	result, err := l.grantLease(ctx, command, leave)
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

// endingLook is the time between two checks of a call whether the leader has ended the rest of a lease.
const endingLook = 20 * time.Millisecond

// LeaseRevoke ends a lease and deletes its keys. A large one ends in parts: the command deletes the first one, and the leader
// the others, as it does with an expired lease, even if the call ends before. A second command of the call might be applied
// after the lease has ended, and end one that another client has granted with the same id since.
func (l *leaseService) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	op := &kv.LeaseRevokeOp{ID: kv.LeaseID(r.ID)}
	result, err := l.propose(ctx, &kv.Command{LeaseRevoke: op})
	if err != nil {
		return nil, err
	}
	if !l.ending(op.ID) {
		// The leader may have deleted the last part meanwhile: the state here has it, whichever member proposed it.
		return &pb.LeaseRevokeResponse{Header: l.headerAt(max(result.Revision, l.revision())).Message()}, nil
	}
	look := time.NewTicker(endingLook)
	defer look.Stop()
	for l.ending(op.ID) {
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if err := l.readIndex(ctx); err != nil { // no leader could end it
			return nil, err
		}
	}
	return &pb.LeaseRevokeResponse{Header: l.headerNow().Message()}, nil
}

// ending reports whether the lease has keys left in the state applied here, which has at least the part that was proposed here.
func (l *leaseService) ending(id kv.LeaseID) bool {
	machine, release := l.options.Member.Machine()
	defer release()
	return machine.Leases().Ending(id)
}

// leaseDesc is the service. Its two answers that may be large are counted before they are collected, and have hand-written
// encodings.
func leaseDesc(l *leaseService) *grpc.ServiceDesc {
	desc := pb.Lease_ServiceDesc
	desc.Methods = slices.Clone(desc.Methods)
	for i := range desc.Methods {
		switch m := &desc.Methods[i]; m.MethodName {
		case "LeaseTimeToLive":
			m.Handler = unaryHandler(l, pb.Lease_LeaseTimeToLive_FullMethodName, l.timeToLive)
		case "LeaseLeases":
			m.Handler = unaryHandler(l, pb.Lease_LeaseLeases_FullMethodName, l.leases)
		}
	}
	return &desc
}

// unaryHandler is a gRPC handler of a method whose answer is not a protobuf message.
func unaryHandler[Request, Response any](
	service any, name string, serve func(context.Context, *Request) (Response, error),
) grpc.MethodHandler {
	info := &grpc.UnaryServerInfo{Server: service, FullMethod: name}
	return func(_ any, ctx context.Context, decode func(any) error, pass grpc.UnaryServerInterceptor) (any, error) {
		request := new(Request)
		if err := decode(request); err != nil {
			return nil, err
		}
		return pass(ctx, request, info, func(ctx context.Context, request any) (any, error) {
			return serve(ctx, request.(*Request))
		})
	}
}

// timeToLive returns the remaining time of a lease; an unknown one has -1, which is not an error.
func (l *leaseService) timeToLive(ctx context.Context, r *pb.LeaseTimeToLiveRequest) (*wire.TimeToLiveResponse, error) {
	if err := l.access.User(ctx); err != nil {
		return nil, err
	}
	response := &wire.TimeToLiveResponse{ID: kv.LeaseID(r.ID), TTLSeconds: -1}
	remaining, granted, err := l.options.Member.LeaseTimeToLive(ctx, response.ID)
	switch {
	case err == nil:
		response.TTLSeconds, response.GrantedTTLSeconds = remaining, granted
	case !errors.Is(err, kv.ErrLeaseNotFound):
		return nil, err
	}
	if r.Keys && err == nil {
		// The leader has answered, but the keys are read here, where an older state may be applied.
		if err := l.readIndex(ctx); err != nil {
			return nil, err
		}
		if err := l.attach(ctx, response); err != nil {
			return nil, err
		}
	}
	response.Header = l.headerNow()
	return response, nil
}

// keyBytes is the memory of a key of a lease in a list, beside its own bytes.
const keyBytes = 16

// attach puts the keys of the lease into an answer to a caller that may read all of them. They are counted before they are
// collected.
func (l *leaseService) attach(ctx context.Context, response *wire.TimeToLiveResponse) error {
	err := l.options.Answers.Build(ctx, 0, func(account kv.Account) error {
		machine, release := l.options.Member.Machine()
		defer release()
		var err error
		response.Memory = account
		response.Keys, err = keysOf(machine, response.ID, account)
		return err
	})
	if err != nil {
		return l.unanswered(err)
	}
	if err := l.access.ReadKeys(ctx, response.Keys); err != nil {
		response.Memory.Release()
		return err
	}
	uncompressed(ctx, response.Memory)
	return nil
}

// keysPerWalk is how many keys of a lease are visited between two calls of Walk.
const keysPerWalk = 64

// keysOf reads the keys of a lease. Those that the lease had at the beginning are counted before any of them is read, and the
// others, which were attached meanwhile, one by one.
func keysOf(machine *apply.Machine, id kv.LeaseID, account kv.Account) (keys []string, err error) {
	count, bytes := machine.Leases().KeysSize(id)
	counted := keyBytes*count + int(bytes)
	if err := account.Take(counted); err != nil {
		return nil, err
	}
	keys = make([]string, 0, count)
	readErr := machine.VisitLeaseKeys(id, func(key []byte) bool {
		if len(keys)%keysPerWalk == keysPerWalk-1 {
			if err = account.Walk(keysPerWalk * kv.WalkKeyBytes); err != nil {
				return false
			}
		}
		if counted -= keyBytes + len(key); counted < 0 {
			err = account.Take(keyBytes + len(key))
		}
		if err == nil {
			keys = append(keys, string(key))
		}
		return err == nil
	})
	return keys, cmp.Or(err, readErr)
}

// statusBytes is the memory of a lease in a list of them while it is collected.
const statusBytes = 24

// leases lists the leases that this member knows, for a caller that may read the keys of all of them. They are counted before
// they are collected.
func (l *leaseService) leases(ctx context.Context, _ *pb.LeaseLeasesRequest) (*wire.LeasesResponse, error) {
	if err := l.access.User(ctx); err != nil {
		return nil, err
	}
	response := &wire.LeasesResponse{}
	err := l.options.Answers.Build(ctx, 0, func(account kv.Account) error {
		machine, release := l.options.Member.Machine()
		defer release()
		if err := account.Take(statusBytes * machine.Leases().Len()); err != nil {
			return err
		}
		response.Memory, response.Header = account, l.headerAt(machine.Store().Revision())
		for _, info := range machine.Leases().Leases(l.options.Clock.Now()) {
			response.IDs = append(response.IDs, info.ID)
		}
		return nil
	})
	if err != nil {
		return nil, l.unanswered(err)
	}
	if err := l.readable(ctx, response.IDs); err != nil {
		response.Memory.Release()
		return nil, err
	}
	uncompressed(ctx, response.Memory)
	return response, nil
}

// readable refuses a caller that may not read all keys of the leases.
func (l *leaseService) readable(ctx context.Context, ids []kv.LeaseID) error {
	if l.access.Free(ctx) { // as of now: the leases were read before
		return nil
	}
	for _, id := range ids {
		asked := &wire.TimeToLiveResponse{ID: id}
		if err := l.attach(ctx, asked); err != nil {
			return err
		}
		asked.Memory.Release()
	}
	return nil
}
