package objects_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/storage/objects/s3"
)

const (
	accessKey = "objects-key"
	secretKey = "objects-secret-key"
	region    = "us-east-1"
)

// server is a server of S3 that runs.
type server struct {
	name    string
	address string // host and port
	// bucket makes an empty bucket of a new name.
	bucket func(t *testing.T) string
	// checks says that the server checks signatures and sums.
	checks bool
}

// buildGateway builds versitygw once, and returns its file.
var buildGateway = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "tool", "-n", "versitygw").Output()
	return strings.TrimSpace(string(out)), err
})

// gateway starts versitygw on a directory. More are flags of its command posix.
func gateway(t *testing.T, dir string, flags ...string) *server {
	t.Helper()
	file, err := buildGateway()
	if err != nil {
		t.Fatalf("versitygw cannot be built: %v", err)
	}
	address := testnet.Address(t)
	log, err := os.Create(filepath.Join(t.TempDir(), "versitygw.log"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	process := exec.CommandContext(ctx, file, append([]string{"--port", address, "--region", region, "--quiet"},
		append(flags, "posix", dir)...)...)
	process.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+accessKey, "ROOT_SECRET_KEY="+secretKey)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = process.Wait() // it was killed
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("versitygw says: %s", text[:min(len(text), 2000)])
		}
	})
	awaitPort(t, address)
	buckets := 0
	return &server{name: "versitygw", address: address, checks: true, bucket: func(t *testing.T) string {
		t.Helper()
		buckets++
		name := "bucket-" + strings.Repeat("x", buckets)
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		return name
	}}
}

// awaitPort waits until a process listens.
func awaitPort(t *testing.T, address string) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("nothing listens at %s", address)
		}
	}
}

// fake starts gofakes3, in memory and in this process.
func fake(t *testing.T) *server {
	t.Helper()
	backend := s3mem.New()
	v := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(v.Close)
	buckets := 0
	return &server{name: "gofakes3", address: strings.TrimPrefix(v.URL, "http://"), bucket: func(t *testing.T) string {
		t.Helper()
		buckets++
		name := "bucket-" + strings.Repeat("x", buckets)
		if err := backend.CreateBucket(name); err != nil {
			t.Fatal(err)
		}
		return name
	}}
}

// servers are those that each test runs against.
func servers(t *testing.T) []*server {
	t.Helper()
	return []*server{gateway(t, t.TempDir()), fake(t)}
}

// open returns the store in a bucket, by an address that may be a proxy's.
func open(t *testing.T, address, bucket string) *s3.Store {
	t.Helper()
	s, err := s3.Open(s3.Options{Endpoint: address, Plain: true, Region: region, Bucket: bucket, Prefix: "c/1/",
		PathStyle: true,
		PartBytes: 5 << 20, Stall: 20 * time.Second, Credentials: func() (s3.Credentials, error) {
			return s3.Credentials{AccessKey: accessKey, SecretKey: secretKey}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// roundTripper is the client of the proxy: it keeps no connection that a fault may have broken.
var roundTripper = &http.Transport{DisableKeepAlives: true}
