package rpc_test

import (
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Ensure that a transaction with too many parts, of which only some were decoded, is refused, even if each list is short
// enough.
func TestServices_txn_tooManyParts(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	inner := &pb.TxnRequest{Compare: slices.Repeat([]*pb.Compare{{Key: []byte("a")}}, 64)}
	outer := &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: inner}}
	for range 2 {
		inner = &pb.TxnRequest{Success: slices.Repeat([]*pb.RequestOp{outer}, 20)}
		outer = &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: inner}}
	}
	if _, err := pb.NewKVClient(s.conn(t)).Txn(waitContext(t), inner); err == nil ||
		err.Error() != rpctypes.ErrGRPCTooManyOps.Error() {
		t.Errorf("%d comparisons: got %v", 20*20*64, err)
	}
}
