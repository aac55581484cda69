package server_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/config"
)

// Ensure that URLs for HTTP clients take HTTP off the gRPC URLs, and that metrics URLs serve metrics and health alone.
func TestServer_ports(t *testing.T) {
	client, web, metrics := testnet.Address(t), testnet.Address(t), testnet.Address(t)
	peer := "http://" + testnet.Address(t)
	startAll(t, []config.Config{loadConfig(t, "--name=m", "--data-dir", filepath.Join(t.TempDir(), "d"),
		"--listen-client-urls=http://"+client, "--advertise-client-urls=http://"+client, "--enable-pprof",
		"--listen-client-http-urls=http://"+web, "--listen-metrics-urls=http://"+metrics,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=m="+peer)})
	for _, row := range []struct {
		at, path string
		code     int // zero: no answer
	}{
		{web, "/version", 200}, {web, "/health", 200}, {web, "/metrics", 200}, {web, "/debug/vars", 200},
		{web, "/debug/pprof/cmdline", 200}, {web, "/v3/openapi.json", 200}, {web, "/v3/kv/range", 501},
		{metrics, "/metrics", 200}, {metrics, "/health", 200}, {metrics, "/livez", 200}, {metrics, "/readyz", 200},
		{metrics, "/v3/openapi.json", 404}, {metrics, "/version", 404}, {metrics, "/debug/vars", 404}, {metrics, "/debug/pprof/cmdline", 404},
		{client, "/version", 0}, {client, "/metrics", 0},
	} {
		code := 0
		if answer, err := http.Get("http://" + row.at + row.path); err == nil {
			code = answer.StatusCode
			_ = answer.Body.Close()
		}
		if code != row.code {
			t.Errorf("%s: got %d, want %d", row.path, code, row.code)
		}
	}
	if code := largeHeaders(t, web); code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("large headers: got %d", code)
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{client}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Put(context.Background(), "k", "v"); err != nil {
		t.Errorf("gRPC: %v", err)
	}
}

func largeHeaders(t *testing.T, at string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+at+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Cookie", strings.Repeat("c", 128<<10))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}
