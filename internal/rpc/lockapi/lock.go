package lockapi

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/api/v3lockpb"
)

// Lock is etcd's Lock service.
type Lock struct {
	v3lockpb.UnsafeLockServer
	store *Store
}

// NewLock makes the service.
func NewLock(store *Store) *Lock { return &Lock{store: store} }

// errLostWhileWaiting means that the caller's key was gone when its turn came: its lease has ended. The text is etcd's.
var errLostWhileWaiting = errors.New("mutex: session is expired")

// Lock waits until the caller holds the lock.
func (l *Lock) Lock(ctx context.Context, r *v3lockpb.LockRequest) (*v3lockpb.LockResponse, error) {
	response, err := l.lock(asCaller(ctx), r)
	return response, etcdsWay(err)
}

func (l *Lock) lock(ctx context.Context, r *v3lockpb.LockRequest) (*v3lockpb.LockResponse, error) {
	lease, err := l.store.leaseOr(ctx, r.Lease)
	if err != nil {
		return nil, err
	}
	key := keyOf(r.Name, lease)
	queued, err := l.store.kv.Txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{createdAt(key, 0)},
		Success: []*pb.RequestOp{putOp(&pb.PutRequest{Key: key, Lease: lease}), rangeOp(firstKey(r.Name))},
		Failure: []*pb.RequestOp{rangeOp(&pb.RangeRequest{Key: key, KeysOnly: true}), rangeOp(firstKey(r.Name))},
	})
	if err != nil {
		return nil, err
	}
	since := queued.Header.Revision
	if !queued.Succeeded { // the same lease asked before
		since = queued.Responses[0].GetResponseRange().Kvs[0].CreateRevision
	}
	oldest := queued.Responses[1].GetResponseRange().Kvs
	if len(oldest) == 0 || oldest[0].CreateRevision == since {
		return &v3lockpb.LockResponse{Header: queued.Header, Key: key}, nil
	}
	header, err := l.await(ctx, r.Name, key, since)
	if err != nil {
		return nil, err
	}
	return &v3lockpb.LockResponse{Header: header, Key: key}, nil
}

// await waits for the turn of a key that was created at a revision.
func (l *Lock) await(ctx context.Context, name, key []byte, since int64) (*pb.ResponseHeader, error) {
	err := l.store.awaitTurn(ctx, name, since-1, len(name))
	var own *pb.RangeResponse
	if err == nil {
		own, err = l.store.kv.Range(ctx, &pb.RangeRequest{Key: key, KeysOnly: true})
	}
	if err != nil {
		after, cancel := afterwards(ctx)
		defer cancel()
		_, _ = l.store.kv.DeleteRange(after, &pb.DeleteRangeRequest{Key: key}) // if it fails, the end of the lease does it
		return nil, err
	}
	if len(own.Kvs) == 0 {
		return nil, errLostWhileWaiting
	}
	return own.Header, nil
}

// Unlock deletes the key of a lock.
func (l *Lock) Unlock(ctx context.Context, r *v3lockpb.UnlockRequest) (*v3lockpb.UnlockResponse, error) {
	deleted, err := l.store.kv.DeleteRange(asCaller(ctx), &pb.DeleteRangeRequest{Key: r.Key})
	if err != nil {
		return nil, etcdsWay(err)
	}
	return &v3lockpb.UnlockResponse{Header: deleted.Header}, nil
}
