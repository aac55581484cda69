package process_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	logs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/grpc"
)

// collected are the bodies of log records that a collector of OpenTelemetry got.
type collected struct {
	logs.UnimplementedLogsServiceServer
	mu     sync.Mutex
	bodies []string
}

// Export implements logs.LogsServiceServer.
func (c *collected) Export(_ context.Context, r *logs.ExportLogsServiceRequest) (*logs.ExportLogsServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, from := range r.GetResourceLogs() {
		for _, scope := range from.GetScopeLogs() {
			for _, record := range scope.GetLogRecords() {
				c.bodies = append(c.bodies, record.GetBody().GetStringValue())
			}
		}
	}
	return &logs.ExportLogsServiceResponse{}, nil
}

func (c *collected) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.bodies, "\n")
}

// collectLogs serves a collector, and returns its address.
func collectLogs(t *testing.T) (*collected, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, server := new(collected), grpc.NewServer()
	logs.RegisterLogsServiceServer(server, c)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return c, l.Addr().String()
}
