package server_test

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/config"
)

// spans passes on all spans.
type spans struct {
	collector.UnimplementedTraceServiceServer
	got chan *tracepb.Span
	all map[string][]*tracepb.Span // those that were looked at, by their parents
}

// Export implements the collector's only call.
func (s *spans) Export(ctx context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	for _, resource := range r.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				select {
				case s.got <- span:
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
	got := &spans{got: make(chan *tracepb.Span, 100), all: map[string][]*tracepb.Span{}}
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
	if _, err := c.Get(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	for _, row := range [][2]string{
		{"etcdserverpb.KV/Put", "apply network queue"}, {"etcdserverpb.KV/Range", "apply network queue read"},
	} {
		if has := got.inside(row[0], row[1]); has != row[1] {
			t.Errorf("inside of %s there are %q, want %q", row[0], has, row[1])
		}
	}
}

// inside waits until a call has spans of these names inside of it, and returns those of the last call that has any if that does not
// come. Spans come in no order, and a call that came before there was a leader has none.
func (s *spans) inside(call, want string) (has string) {
	late := time.After(30 * time.Second)
	for {
		for _, of := range s.all[""] {
			if names := s.within(of); of.Name == call && names != "" {
				if has = names; has == want {
					return has
				}
			}
		}
		select {
		case span := <-s.got:
			s.all[string(span.ParentSpanId)] = append(s.all[string(span.ParentSpanId)], span)
		case <-late:
			return has
		}
	}
}

// within returns the names of the spans in one, sorted.
func (s *spans) within(of *tracepb.Span) string {
	var names []string
	for _, inside := range s.all[string(of.SpanId)] {
		if bytes.Equal(inside.TraceId, of.TraceId) && inside.StartTimeUnixNano >= of.StartTimeUnixNano &&
			inside.EndTimeUnixNano <= of.EndTimeUnixNano {
			names = append(names, inside.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
