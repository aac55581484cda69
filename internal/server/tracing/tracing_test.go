package tracing_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	oteltrace "go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/internal/server/tracing"
)

// sink is a collector.
type sink struct {
	collector.UnimplementedTraceServiceServer
	mu  sync.Mutex
	got []string // resource and span, as text

	states []string      // the tracestate of each span, with its name
	hold   chan struct{} // if not nil: no call is answered until it is closed
}

// Export implements the collector's only call.
func (s *sink) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	if s.hold != nil {
		<-s.hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range r.ResourceSpans {
		of := ""
		for _, attribute := range resource.Resource.Attributes {
			of += attribute.Key + "=" + attribute.Value.GetStringValue() + " "
		}
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				s.got = append(s.got, of+span.Name)
				s.states = append(s.states, span.Name+":"+span.TraceState)
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

type healthy struct {
	grpc_health_v1.UnimplementedHealthServer
}

// Check implements the call that is traced.
func (healthy) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return &grpc_health_v1.HealthCheckResponse{}, nil
}

func serve(t *testing.T, register func(*grpc.Server), options ...grpc.ServerOption) (*grpc.Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	register(server)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return server, l.Addr().String()
}

// call makes one call through a server that is traced, with the trace that the client names, and returns what the collector got.
func call(t *testing.T, perMillion int, traceparent string) string {
	t.Helper()
	got := &sink{}
	_, address := serve(t, func(s *grpc.Server) { collector.RegisterTraceServiceServer(s, got) })
	exporter, err := tracing.Start(t.Context(), tracing.Options{Address: address, Service: "etcd", Instance: "m1",
		PerMillion: perMillion, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server, traced := serve(t, func(s *grpc.Server) { grpc_health_v1.RegisterHealthServer(s, healthy{}) }, grpc.StatsHandler(exporter.Calls()))
	conn, err := grpc.NewClient(traced, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if traceparent != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", traceparent)
	}
	if _, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	server.GracefulStop() // the span ends after the client has its answer
	if err := exporter.Close(ctx); err != nil {
		t.Fatal(err)
	}
	got.mu.Lock()
	defer got.mu.Unlock()
	return strings.Join(got.got, "\n")
}

// Ensure that a call is recorded if its client says so, or else by the rate; as one of this service and this member.
func TestExporter(t *testing.T) {
	const span = "service.instance.id=m1 service.name=etcd grpc.health.v1.Health/Check"
	trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"
	for name, row := range map[string]struct {
		perMillion  int
		traceparent string
		want        string
	}{
		"rate 0":                      {0, "", ""},
		"rate 0, the client wants it": {0, trace + "01", span},
		"all":                         {tracing.Million, "", span},
		"all, the client does not":    {tracing.Million, trace + "00", ""},
	} {
		if got := call(t, row.perMillion, row.traceparent); got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}

// lines counts the lines of a log.
type lines struct {
	slog.Handler
	n atomic.Int32
}

// Enabled implements slog.Handler.
func (l *lines) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l *lines) Handle(context.Context, slog.Record) error {
	l.n.Add(1)
	return nil
}

// Ensure that without a collector a start and calls go on, and the log says it once.
func TestExporter_noCollector(t *testing.T) {
	log := &lines{Handler: slog.DiscardHandler}
	exporter, err := tracing.Start(t.Context(), tracing.Options{Address: "127.0.0.1:1", Service: "etcd",
		PerMillion: tracing.Million, Logger: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	_, traced := serve(t, func(s *grpc.Server) { grpc_health_v1.RegisterHealthServer(s, healthy{}) }, grpc.StatsHandler(exporter.Calls()))
	conn, err := grpc.NewClient(traced, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 3000 { // more than the queue holds
		if _, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := exporter.Close(ctx); err == nil {
		t.Error("spans were sent to nobody")
	}
	for range 3 {
		otel.Handle(errors.New("no answer"))
	}
	if n, failed := log.n.Load(), exporter.Failed(); n != 1 || failed < 3 {
		t.Errorf("%d lines, %d failures", n, failed)
	}
}

// Ensure that spans beyond those that may wait are dropped and counted, while a collector does not answer, and the others sent.
func TestExporter_dropped(t *testing.T) {
	const most, more = 2048, 300
	got := &sink{hold: make(chan struct{})}
	_, address := serve(t, func(s *grpc.Server) { collector.RegisterTraceServiceServer(s, got) })
	exporter, err := tracing.Start(t.Context(), tracing.Options{Address: address, Service: "etcd", PerMillion: tracing.Million,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for range most + more {
		exporter.Inside(t.Context(), []tracing.Span{{Name: "sync"}})
	}
	if n := exporter.Dropped(); n != more {
		t.Errorf("%d spans were dropped, want %d", n, more)
	}
	close(got.hold)
	if err := exporter.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(got.got); n != most || exporter.Dropped() != more {
		t.Errorf("%d spans were sent and %d dropped, want %d and %d", n, exporter.Dropped(), most, more)
	}
}

// Ensure that spans inside of a call are in its trace and do not repeat the tracestate of the client, which may be long.
func TestExporter_Inside_tracestate(t *testing.T) {
	got := &sink{}
	_, address := serve(t, func(s *grpc.Server) { collector.RegisterTraceServiceServer(s, got) })
	exporter, err := tracing.Start(t.Context(), tracing.Options{Address: address, Service: "etcd", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	state, err := oteltrace.ParseTraceState("vendor=" + strings.Repeat("x", 200))
	if err != nil {
		t.Fatal(err)
	}
	of := oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: oteltrace.TraceID{1}, SpanID: oteltrace.SpanID{2},
		TraceFlags: oteltrace.FlagsSampled, TraceState: state})
	exporter.Inside(oteltrace.ContextWithSpanContext(t.Context(), of), []tracing.Span{{Name: "sync",
		Inside: []tracing.Span{{Name: "disk"}}}})
	if err := exporter.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(got.states, " "); said != "disk: sync:" {
		t.Errorf("got spans with tracestates %q", said)
	}
}
