package rpc_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
)

// Ensure that compressed requests are served, and that one whose decompressed size exceeds the bound, of 1.5 MiB, is refused.
func TestServices_gzip(t *testing.T) {
	s := serveMember(t, nil)
	kv := pb.NewKVClient(s.conn(t))
	put := func(ctx context.Context, value []byte) error {
		_, err := kv.Put(ctx, &pb.PutRequest{Key: []byte("k"), Value: value}, grpc.UseCompressor(gzip.Name),
			grpc.MaxCallSendMsgSize(1<<30))
		return err
	}
	if err := put(waitContext(t), []byte(strings.Repeat("v", 1000))); err != nil {
		t.Errorf("a compressed put: %v", err)
	}
	if err := put(waitContext(t), bytes.Repeat([]byte{0}, 8<<20)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a bomb: got %v, want ResourceExhausted", err)
	}
	_, metrics := s.get(t, "/metrics")
	if !strings.Contains(metrics, "etcd_network_client_grpc_received_bytes_total 10") {
		t.Error("the bytes of the put were not counted")
	}
}
