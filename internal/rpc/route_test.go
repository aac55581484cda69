package rpc_test

import (
	"context"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
)

const routeKey = "quorate-route"

// routeWrites are the requests that are proposed, and whose answers have a route.
var routeWrites = []struct {
	name string
	call func(ctx context.Context, kv pb.KVClient, option grpc.CallOption) error
}{
	{"put", func(ctx context.Context, kv pb.KVClient, option grpc.CallOption) error {
		_, err := kv.Put(ctx, &pb.PutRequest{Key: []byte("a"), Value: []byte("1")}, option)
		return err
	}},
	{"txn that writes", func(ctx context.Context, kv pb.KVClient, option grpc.CallOption) error {
		_, err := kv.Txn(ctx, &pb.TxnRequest{Success: list(putOp("b"))}, option)
		return err
	}},
	{"delete", func(ctx context.Context, kv pb.KVClient, option grpc.CallOption) error {
		_, err := kv.DeleteRange(ctx, &pb.DeleteRangeRequest{Key: []byte("b")}, option)
		return err
	}},
}

func TestRoute_onlyIfAsked(t *testing.T) {
	s := serveMember(t, nil)
	kv, ctx := pb.NewKVClient(s.conn(t)), waitContext(t)
	asking := metadata.AppendToOutgoingContext(ctx, routeKey, "?")
	for _, write := range routeWrites {
		var asked, silent metadata.MD
		if err := write.call(asking, kv, grpc.Header(&asked)); err != nil {
			t.Fatal(err)
		}
		if err := write.call(ctx, kv, grpc.Header(&silent)); err != nil {
			t.Fatal(err)
		}
		if got := asked.Get(routeKey); !slices.Equal(got, []string{"leader"}) {
			t.Errorf("%s, asked: got %q, want the leader's own answer", write.name, got)
		}
		if got := silent.Get(routeKey); got != nil {
			t.Errorf("%s, not asked: got %q", write.name, got)
		}
	}
	var header metadata.MD
	if _, err := kv.Range(asking, &pb.RangeRequest{Key: []byte("a")}, grpc.Header(&header)); err != nil {
		t.Fatal(err)
	}
	if got := header.Get(routeKey); got != nil {
		t.Errorf("a read was answered by route %q", got)
	}
}

func TestRoute_noneWithoutAnswer(t *testing.T) {
	backend := newMachineBackend(t)
	s := serve(t, backend, nil)
	backend.lead(consensus.NoMember)
	kv := pb.NewKVClient(s.conn(t))
	asking := metadata.AppendToOutgoingContext(waitContext(t), routeKey, "?")
	for _, write := range routeWrites {
		var header metadata.MD
		err := write.call(asking, kv, grpc.Header(&header))
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("%s: got %v, want that there is no leader", write.name, err)
		}
		if got := header.Get(routeKey); got != nil {
			t.Errorf("%s: nobody answered, by route %q", write.name, got)
		}
	}
}
