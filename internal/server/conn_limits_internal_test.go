package server

import (
	"errors"
	"net"
	"testing"
)

func TestClientConns(t *testing.T) {
	for _, tc := range []struct {
		files uint64
		want  int
	}{{0, maxClientConns}, {256, 128}, {16_384, 8_192}, {20_000, 11_808}, {1 << 20, maxClientConns}, {1<<64 - 1, maxClientConns}} {
		if got := clientConns(tc.files); got != tc.want {
			t.Errorf("%d files: got %d, want %d", tc.files, got, tc.want)
		}
	}
}

func TestNewConnLimits(t *testing.T) {
	for _, row := range []struct {
		files                  uint64
		clients, http, metrics int
	}{{0, maxClientConns, maxHTTPConns, maxMetricsConns}, {256, 128, 16, 16}, {16_384, 8_192, 1_024, maxMetricsConns}} {
		c := newConnLimits(row.files, 1<<20)
		if c.clients.Limit() != row.clients || c.http.Limit() != row.http || c.metrics.Limit() != row.metrics {
			t.Errorf("%d files: got %d, %d, %d", row.files, c.clients.Limit(), c.http.Limit(), c.metrics.Limit())
		}
	}
}

func isReset(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) && !operation.Timeout()
}
