package client

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/api/quoratepb"
)

// remote is the KVClient of clientv3's KV: it passes reads and compactions to etcd's service, and writes to the writer.
type remote struct {
	pb.KVClient
	writer *writer
}

// Put implements pb.KVClient.
func (r *remote) Put(ctx context.Context, in *pb.PutRequest, _ ...grpc.CallOption) (*pb.PutResponse, error) {
	out := new(pb.PutResponse)
	if err := r.writer.write(ctx, quoratepb.Proposal_KIND_PUT, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// DeleteRange implements pb.KVClient.
func (r *remote) DeleteRange(
	ctx context.Context, in *pb.DeleteRangeRequest, _ ...grpc.CallOption,
) (*pb.DeleteRangeResponse, error) {
	out := new(pb.DeleteRangeResponse)
	if err := r.writer.write(ctx, quoratepb.Proposal_KIND_DELETE_RANGE, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Txn implements pb.KVClient. A transaction that cannot write is a read.
func (r *remote) Txn(ctx context.Context, in *pb.TxnRequest, opts ...grpc.CallOption) (*pb.TxnResponse, error) {
	if !mayWrite(in) {
		return r.KVClient.Txn(ctx, in, opts...)
	}
	out := new(pb.TxnResponse)
	if err := r.writer.write(ctx, quoratepb.Proposal_KIND_TXN, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// mayWrite reports whether a branch of a transaction, or of one nested in it, writes.
func mayWrite(txn *pb.TxnRequest) bool {
	for _, branch := range [2][]*pb.RequestOp{txn.Success, txn.Failure} {
		for _, op := range branch {
			if nested := op.GetRequestTxn(); nested != nil && !mayWrite(nested) {
				continue
			}
			if op.GetRequestRange() == nil {
				return true
			}
		}
	}
	return false
}
