package rpc_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/metadata"
)

// Ensure, with the race detector, that a write which is applied after its call has ended, and which asked for its route, shares
// no memory with that call.
func TestKV_route_ofEndedCall(t *testing.T) {
	s := serveMember(t, nil)
	kv, ctx := pb.NewKVClient(s.conn(t)), waitContext(t)
	for round := range 10 {
		var puts []*pb.RequestOp
		for i := range 100 {
			puts = append(puts, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{
				Key: fmt.Appendf(nil, "k%03d", i), Value: make([]byte, 2000)}}})
		}
		if _, err := kv.Txn(ctx, &pb.TxnRequest{Success: puts}); err != nil {
			t.Fatal(err)
		}
		asked := metadata.AppendToOutgoingContext(ctx, "quorate-route", "?")
		short, cancel := context.WithTimeout(asked, time.Duration(round)*500*time.Microsecond)
		_, _ = kv.DeleteRange(short, &pb.DeleteRangeRequest{Key: []byte("k"), RangeEnd: []byte("l")}) // whatever the result is
		cancel()
	}
	if _, err := kv.Put(ctx, &pb.PutRequest{Key: []byte("k")}); err != nil { // after all these
		t.Fatal(err)
	}
}
