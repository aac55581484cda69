package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	nativeclient "github.com/quorate/quorate/client"
	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/server/certs/certstest"
)

// secured is a cluster that demands certificates of clients and members.
type secured struct {
	t         *testing.T
	dir       string
	authority *certstest.Authority
	servers   []*server.Server
}

func loadConfig(t *testing.T, args ...string) config.Config {
	t.Helper()
	c, err := config.Load(args, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// startAll starts all servers at once, as none is ready without the others.
func startAll(t *testing.T, configs []config.Config) []*server.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	servers := make([]*server.Server, len(configs))
	failures := make([]error, len(configs))
	var starting sync.WaitGroup
	for i, c := range configs {
		starting.Go(func() {
			logger := slog.New(slog.DiscardHandler)
			servers[i], failures[i] = server.Start(ctx, c, server.Options{Logger: logger})
		})
	}
	starting.Wait()
	t.Cleanup(func() {
		for _, s := range servers {
			if s != nil {
				_ = s.Stop(context.Background())
			}
		}
	})
	for i, err := range failures {
		if err != nil {
			t.Fatalf("server %d: %v", i, err)
		}
	}
	return servers
}

func startSecured(t *testing.T, size int) *secured {
	t.Helper()
	s := &secured{t: t, dir: t.TempDir(), authority: certstest.New(t, "first")}
	cert, key := s.authority.Issue(s.dir, "member", certstest.Loopback)
	s.authority.Issue(s.dir, "client", certstest.Loopback)
	roots := s.authority.Publish(filepath.Join(s.dir, "ca.crt"))
	var peers, cluster []string
	for i := range size {
		peers = append(peers, "https://"+testnet.Address(t))
		cluster = append(cluster, fmt.Sprintf("m%d=%s", i, peers[i]))
	}
	var configs []config.Config
	for i := range size {
		configs = append(configs, loadConfig(t, "--name", fmt.Sprintf("m%d", i), "--data-dir", filepath.Join(s.dir,
			fmt.Sprint(i)), "--listen-client-urls=https://127.0.0.1:0", "--listen-peer-urls", peers[i],
			"--initial-cluster", strings.Join(cluster, ","), "--heartbeat-interval=20", "--election-timeout=200",
			"--cert-file", cert, "--key-file", key, "--trusted-ca-file", roots, "--client-cert-auth",
			"--peer-cert-file", cert, "--peer-key-file", key, "--peer-trusted-ca-file", roots, "--peer-client-cert-auth"))
	}
	s.servers = startAll(t, configs)
	return s
}

// trusting is a client's configuration by the files of this moment, without a certificate of its own.
func (s *secured) trusting() *tls.Config {
	s.t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.dir, "ca.crt"))
	if err != nil {
		s.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(raw)
	return &tls.Config{RootCAs: roots}
}

// certified is trusting with the client's certificate.
func (s *secured) certified() *tls.Config {
	s.t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(s.dir, "client.crt"), filepath.Join(s.dir, "client.key"))
	if err != nil {
		s.t.Fatal(err)
	}
	c := s.trusting()
	c.Certificates = []tls.Certificate{pair}
	return c
}

func (s *secured) address(i int) string { return s.servers[i].ClientAddresses()[0].String() }

// put writes through one server with the official client.
func (s *secured) put(i int, config *tls.Config, key string, limit time.Duration) error {
	s.t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + s.address(i)}, TLS: config})
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	_, err = client.Put(ctx, key, "value")
	return err
}

// visit asks one server over HTTP/1.1, where a refused handshake is an error at once.
func (s *secured) visit(i int, config *tls.Config) error {
	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer browser.CloseIdleConnections()
	answer, err := browser.Get("https://" + s.address(i) + "/health")
	if err == nil {
		err = answer.Body.Close()
	}
	return err
}

// Ensure that clients and members that show certificates are served, by each member and over each protocol.
func TestServer_tls(t *testing.T) {
	s := startSecured(t, 3)
	for i := range s.servers {
		if err := s.put(i, s.certified(), "k", time.Minute); err != nil {
			t.Errorf("member %d: %v", i, err)
		}
	}
	// Offers HTTP/2 too, as curl does, and means a request that gRPC would not understand.
	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: s.certified(), ForceAttemptHTTP2: true}}
	answer, err := browser.Get("https://" + s.address(0) + "/health")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || !bytes.Contains(body, []byte(`"health":"true"`)) {
		t.Errorf("health: got %q, %v", body, err)
	}
	browser.CloseIdleConnections()
}

// Ensure that no client is served without a certificate, with one of another authority, or without encryption.
func TestServer_tls_refuses(t *testing.T) {
	s := startSecured(t, 1)
	if err := s.visit(0, s.certified()); err != nil {
		t.Errorf("our certificate: %v", err)
	}
	if err := s.visit(0, s.trusting()); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("no certificate: got %v, want a refusal", err)
	}
	if err := s.put(0, s.trusting(), "k", 300*time.Millisecond); err == nil {
		t.Error("no certificate: the official client was served")
	}
	theirs := t.TempDir()
	cert, key := certstest.New(t, "foreign").Issue(theirs, "foreign", certstest.Loopback)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	foreign := s.trusting()
	foreign.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	if err := s.visit(0, foreign); err == nil || !strings.Contains(err.Error(), "unknown certificate authority") {
		t.Errorf("a certificate of another authority: got %v, want a refusal", err)
	}
	if answer, err := http.Get("http://" + s.address(0) + "/health"); err == nil {
		answer.Body.Close()
		t.Error("no encryption: was served")
	}
}

// Ensure that a running cluster moves to another authority when its files are replaced.
func TestServer_tls_reload(t *testing.T) {
	s := startSecured(t, 3)
	old := s.certified()
	if err := s.put(0, old, "before", time.Minute); err != nil {
		t.Fatal(err)
	}
	s.authority = certstest.New(t, "second")
	s.authority.Issue(s.dir, "member", certstest.Loopback)
	s.authority.Issue(s.dir, "client", certstest.Loopback)
	s.authority.Publish(filepath.Join(s.dir, "ca.crt"))
	for i := range s.servers {
		if err := s.put(i, s.certified(), "after", time.Minute); err != nil {
			t.Errorf("member %d: %v", i, err)
		}
	}
	if err := s.visit(0, old); err == nil || !strings.Contains(err.Error(), "signed by unknown authority") {
		t.Errorf("who trusts the old authority: got %v, want a failure", err)
	}
	old.RootCAs = s.trusting().RootCAs
	shown := old.Certificates[0]
	old.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown, nil }
	if err := s.visit(0, old); err == nil || !strings.Contains(err.Error(), "unknown certificate authority") {
		t.Errorf("the old certificate: got %v, want a refusal", err)
	}
}

// Ensure that a joining member finds its cluster over TLS that no operator had to prepare.
func TestServer_autoTLS_join(t *testing.T) {
	dir, first, second := t.TempDir(), "https://"+testnet.Address(t), "https://"+testnet.Address(t)
	args := func(name, peer, cluster string, more ...string) []string {
		return append([]string{"--name", name, "--data-dir", filepath.Join(dir, name), "--listen-peer-urls", peer,
			"--listen-client-urls=https://127.0.0.1:0", "--auto-tls", "--peer-auto-tls", "--initial-cluster", cluster,
			"--heartbeat-interval=20", "--election-timeout=200"}, more...)
	}
	founder := startAll(t, []config.Config{loadConfig(t, args("a", first, "a="+first)...)})[0]
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + founder.ClientAddresses()[0].String()},
		TLS: &tls.Config{InsecureSkipVerify: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := client.MemberAddAsLearner(ctx, []string{second}); err != nil {
		t.Fatal(err)
	}
	startAll(t, []config.Config{loadConfig(t, args("b", second, "a="+first+",b="+second,
		"--initial-cluster-state=existing")...)})
	members, err := client.MemberList(ctx)
	if err != nil || len(members.Members) != 2 {
		t.Errorf("got %v, %v, want two members", members, err)
	}
}

// Ensure that one port serves http and https where both URLs are given.
func TestServer_tls_onePort(t *testing.T) {
	address := testnet.Address(t)
	startAll(t, []config.Config{loadConfig(t, "--data-dir", t.TempDir(), "--listen-client-urls", "http://"+address+
		",https://"+address, "--auto-tls", "--listen-peer-urls=http://127.0.0.1:0",
		"--initial-advertise-peer-urls=http://127.0.0.1:1", "--initial-cluster=default=http://127.0.0.1:1")})
	for url, config := range map[string]*tls.Config{"http://": nil, "https://": {InsecureSkipVerify: true}} {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{url + address}, TLS: config})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if _, err := client.Put(ctx, "k", "v"); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		cancel()
		_ = client.Close()
		native, err := nativeclient.New(nativeclient.Config{Endpoints: []string{url + address}, TLS: config})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		if _, err := native.Put(ctx, "k", "v"); err != nil {
			t.Errorf("%s, the native client: %v", url, err)
		}
		cancel()
		_ = native.Close()
	}
}

// Ensure that a start that fails for its certificates says which, and leaves nothing behind.
func TestServer_tls_badFile(t *testing.T) {
	c := loadConfig(t, "--data-dir", t.TempDir(), "--listen-client-urls=https://127.0.0.1:0", "--cert-file=absent.crt",
		"--key-file=absent.key", "--listen-peer-urls=http://127.0.0.1:0", "--initial-cluster=default=http://localhost:2380",
		"--initial-advertise-peer-urls=http://localhost:2380")
	for range 2 {
		_, err := server.Start(t.Context(), c, server.Options{Logger: slog.New(slog.DiscardHandler)})
		if want := "--cert-file absent.crt: no such file or directory"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
