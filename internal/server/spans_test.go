package server_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/config"
)

// spanNames passes on the names of all spans.
type spanNames struct {
	collector.UnimplementedTraceServiceServer
	names chan string
}

// Export implements the collector's only call.
func (s *spanNames) Export(ctx context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	for _, resource := range r.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				select {
				case s.names <- span.Name:
				case <-ctx.Done():
				}
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// Ensure that the flags of tracing make spans of calls, whatever speaks HTTP/2.
func TestServer_tracing(t *testing.T) {
	for _, transport := range []string{"grpc-go", "quorate"} {
		t.Run(transport, func(t *testing.T) { testTracing(t, "--grpc-transport="+transport) })
	}
}

func testTracing(t *testing.T, transport string) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1") // ms
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got := &spanNames{names: make(chan string, 100)}
	to := grpc.NewServer()
	collector.RegisterTraceServiceServer(to, got)
	go to.Serve(l)
	t.Cleanup(to.Stop)
	client, peer := testnet.Address(t), "http://"+testnet.Address(t)
	startAll(t, []config.Config{loadConfig(t, "--name=m", "--data-dir", filepath.Join(t.TempDir(), "d"),
		"--listen-client-urls=http://"+client, "--advertise-client-urls=http://"+client, "--enable-distributed-tracing", transport,
		"--distributed-tracing-address="+l.Addr().String(), "--distributed-tracing-sampling-rate=1000000",
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=m="+peer)})
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{client}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Put(t.Context(), "k", "v"); err != nil {
		t.Fatal(err)
	}
	for name := ""; name != "etcdserverpb.KV/Put"; {
		name = <-got.names
	}
}
