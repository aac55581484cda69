package rpc_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/rpc"
)

// Ensure that hosts and origins that are not listed are turned away or told nothing, and that OPTIONS is answered.
func TestHandler_hostsAndOrigins(t *testing.T) {
	s := serve(t, newMachineBackend(t), func(o *rpc.Options) {
		o.AllowedHosts, o.AllowedOrigins = []string{"good.example"}, []string{"https://page.example"}
	})
	for _, row := range []struct {
		method, host, origin string
		code                 int
		allowed              string
	}{
		{"GET", "good.example:2379", "", 200, ""},
		{"GET", "bad.example", "", 421, ""},
		{"OPTIONS", "bad.example", "https://page.example", 421, ""},
		{"GET", "good.example", "https://page.example", 200, "https://page.example"},
		{"OPTIONS", "good.example", "https://page.example", 200, "https://page.example"},
		{"GET", "good.example", "https://other.example", 200, ""},
	} {
		request, err := http.NewRequestWithContext(waitContext(t), row.method, "http://"+s.addr+"/version", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = row.host
		if row.origin != "" {
			request.Header.Set("Origin", row.origin)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got := answer.Header.Get("Access-Control-Allow-Origin"); answer.StatusCode != row.code || got != row.allowed {
			t.Errorf("%+v: got %d, origin %q", row, answer.StatusCode, got)
		}
	}
}

// Ensure that compressed requests are served, and that one which unpacks to more than a request may be is refused.
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
	if err := put(waitContext(t), bytes.Repeat([]byte{0}, 64<<20)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a bomb: got %v, want ResourceExhausted", err)
	}
	_, metrics := s.get(t, "/metrics")
	if !strings.Contains(metrics, "etcd_network_client_grpc_received_bytes_total 10") {
		t.Error("the bytes of the put were not counted")
	}
}
