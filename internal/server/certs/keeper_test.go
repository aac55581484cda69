package certs_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/server/certs"
	"github.com/quorate/quorate/internal/server/certs/certstest"
)

// logs keeps log lines.
type logs struct {
	mu      sync.Mutex
	all     bytes.Buffer
	written chan struct{} // closed with the next line
}

func newLogs() *logs { return &logs{written: make(chan struct{})} }

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.written)
	l.written = make(chan struct{})
	return l.all.Write(p)
}

// await waits for a line: a client may hear of a refusal before it is logged.
func (l *logs) await(t *testing.T, want string) {
	t.Helper()
	limit := time.After(10 * time.Second)
	for {
		l.mu.Lock()
		all, written := l.all.String(), l.written
		l.mu.Unlock()
		if strings.Contains(all, want) {
			return
		}
		select {
		case <-written:
		case <-limit:
			t.Fatalf("no line says %q:\n%s", want, all)
		}
	}
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func openKeeper(t *testing.T, kind certs.Kind, files config.TLS) (*certs.Keeper, *logs) {
	t.Helper()
	c := config.Default()
	c.Storage.DataDir = t.TempDir()
	c.TLS.Client, c.TLS.Peer = files, files
	lines := newLogs()
	k, err := certs.Open(kind, &c, lines.logger())
	if err != nil {
		t.Fatal(err)
	}
	return k, lines
}

func listenLoopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// echo answers every connection's first line with the same line.
func echo(t *testing.T, l net.Listener) net.Addr {
	t.Helper()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
					_, _ = io.WriteString(conn, line)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return l.Addr()
}

// ask sends a line and reads the answer; a nil configuration asks unencrypted.
func ask(to net.Addr, client *tls.Config) (tls.ConnectionState, error) {
	conn, err := net.Dial("tcp", to.String())
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	var state tls.ConnectionState
	if client != nil {
		client = client.Clone()
		client.ServerName = "127.0.0.1"
		secured := tls.Client(conn, client)
		if err := secured.Handshake(); err != nil {
			return state, err
		}
		state = secured.ConnectionState()
		conn = secured
	}
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		return state, err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && line != "hello\n" {
		err = fmt.Errorf("got %q", line)
	}
	return state, err
}

// Ensure that replaced files count for the next connection in both roles, the authorities too, and that files which
// cannot be read do not.
func TestKeeper_reload(t *testing.T) {
	dir := t.TempDir()
	first, second := certstest.New(t, "first"), certstest.New(t, "second")
	cert, key := first.Issue(dir, "member", certstest.Loopback)
	roots := first.Publish(filepath.Join(dir, "ca.crt"))
	k, lines := openKeeper(t, certs.Peer, config.TLS{CertFile: cert, KeyFile: key, TrustedCAFile: roots})
	address := echo(t, k.Listen(listenLoopback(t), certs.GRPC))
	authorityOf := func() string {
		t.Helper()
		state, err := ask(address, k.Dial())
		if err != nil {
			t.Fatal(err)
		}
		if state.DidResume {
			t.Error("a session was resumed")
		}
		return state.PeerCertificates[0].Issuer.CommonName
	}
	if got := authorityOf(); got != "first" {
		t.Errorf("at the start: got %s", got)
	}
	certstest.Replace(t, cert, []byte("half a file"))
	if got := authorityOf(); got != "first" {
		t.Errorf("with a damaged file: got %s", got)
	}
	if got := strings.Count(lines.String(), "changed TLS files cannot be used"); got != 1 {
		t.Errorf("got %d warnings, want 1:\n%s", got, lines)
	}
	before := k.Dial()
	second.Issue(dir, "member", certstest.Loopback)
	second.Publish(roots)
	if got := authorityOf(); got != "second" {
		t.Errorf("after the change: got %s", got)
	}
	if _, err := ask(address, before); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("who trusts the old authority: got %v", err)
	}
}

// Ensure that a file that vanished or lost its key leaves the last good pair in force.
func TestKeeper_reload_vanished(t *testing.T) {
	dir := t.TempDir()
	a := certstest.New(t, "a")
	cert, key := a.Issue(dir, "member", certstest.Loopback)
	roots := a.Publish(filepath.Join(dir, "ca.crt"))
	k, lines := openKeeper(t, certs.Client, config.TLS{CertFile: cert, KeyFile: key, TrustedCAFile: roots})
	address := echo(t, k.Listen(listenLoopback(t), certs.HTTP))
	for _, file := range []string{key, cert, roots} {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if _, err := ask(address, k.Dial()); err != nil {
			t.Errorf("without %s: %v", file, err)
		}
		if !strings.Contains(lines.String(), file+": no such file or directory") {
			t.Errorf("no line names %s:\n%s", file, lines)
		}
	}
}

// Ensure that a process that shows no certificate, or one of another authority, is turned away with a line in the log.
func TestListener_authentication(t *testing.T) {
	dir := t.TempDir()
	ours, theirs := certstest.New(t, "ours"), certstest.New(t, "theirs")
	cert, key := ours.Issue(dir, "server", certstest.Loopback)
	foreignCert, foreignKey := theirs.Issue(dir, "foreign", certstest.Loopback)
	roots := ours.Publish(filepath.Join(dir, "ca.crt"))
	k, lines := openKeeper(t, certs.Client, config.TLS{CertFile: cert, KeyFile: key, TrustedCAFile: roots})
	address := echo(t, k.Listen(listenLoopback(t), certs.GRPCAndHTTP))
	if _, err := ask(address, k.Dial()); err != nil {
		t.Errorf("a client of our authority: %v", err)
	}
	anonymous := k.Dial()
	anonymous.GetClientCertificate = nil
	foreign := anonymous.Clone()
	pair, err := tls.LoadX509KeyPair(foreignCert, foreignKey)
	if err != nil {
		t.Fatal(err)
	}
	foreign.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	for _, row := range []struct {
		name   string
		client *tls.Config
		logged string
	}{
		{"no certificate", anonymous, "rejected connection on client endpoint"},
		{"no certificate", anonymous, "client didn't provide a certificate"},
		{"another authority", foreign, "certificate signed by unknown authority"},
		{"no TLS", nil, "first record does not look like a TLS handshake"},
	} {
		if _, err := ask(address, row.client); err == nil {
			t.Errorf("%s: was served", row.name)
		}
		lines.await(t, row.logged)
	}
	if n := k.Refused(); n != 1 {
		t.Errorf("%d refusals of a certificate are counted, want that of another authority", n)
	}
}

// Ensure that a peer's certificate counts only at the addresses it names, unless that is waived.
func TestListener_origin(t *testing.T) {
	dir := t.TempDir()
	a := certstest.New(t, "a")
	files := config.TLS{TrustedCAFile: a.Publish(filepath.Join(dir, "ca.crt"))}
	files.CertFile, files.KeyFile = a.Issue(dir, "here", certstest.Loopback)
	files.ClientCertFile, files.ClientKeyFile = a.Issue(dir, "elsewhere", net.IPv4(192, 0, 2, 1))
	k, lines := openKeeper(t, certs.Peer, files)
	if _, err := ask(echo(t, k.Listen(listenLoopback(t), certs.GRPC)), k.Dial()); err == nil {
		t.Error("a certificate of another address was accepted")
	}
	lines.await(t, "connects from 127.0.0.1, which its certificate does not name")
	files.SkipClientSANVerification = true
	k, _ = openKeeper(t, certs.Peer, files)
	if _, err := ask(echo(t, k.Listen(listenLoopback(t), certs.GRPC)), k.Dial()); err != nil {
		t.Errorf("waived: %v", err)
	}
	k, _ = openKeeper(t, certs.Client, config.TLS{CertFile: files.CertFile, KeyFile: files.KeyFile,
		ClientCertFile: files.ClientCertFile, ClientKeyFile: files.ClientKeyFile, TrustedCAFile: files.TrustedCAFile})
	if _, err := ask(echo(t, k.Listen(listenLoopback(t), certs.HTTP)), k.Dial()); err != nil {
		t.Errorf("clients come from anywhere: %v", err)
	}
}

// Ensure that a process that is not among those named is turned away, although the authority has signed for it, and told from
// others in the log.
func TestListener_allowed(t *testing.T) {
	dir := t.TempDir()
	a := certstest.New(t, "a")
	files := config.TLS{TrustedCAFile: a.Publish(filepath.Join(dir, "ca.crt"))}
	files.CertFile, files.KeyFile = a.IssueAs(dir, "member", &x509.Certificate{IPAddresses: []net.IP{certstest.Loopback},
		URIs: []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/member"}}})
	for _, row := range []struct {
		name     string
		kind     certs.Kind
		change   func(*config.TLS)
		admitted bool
	}{
		{"by its common name", certs.Peer, func(f *config.TLS) { f.AllowedCNs = []string{"x", "member"} }, true},
		{"by another common name", certs.Peer, func(f *config.TLS) { f.AllowedCNs = []string{"x"} }, false},
		{"by its host", certs.Peer, func(f *config.TLS) { f.AllowedHostnames = []string{"x", "127.0.0.1"} }, true},
		{"by another host", certs.Peer, func(f *config.TLS) { f.AllowedHostnames = []string{"127.0.0.2"} }, false},
		{"a common name is no host", certs.Peer, func(f *config.TLS) { f.AllowedHostnames = []string{"member"} }, false},
		{"a client by its host", certs.Client, func(f *config.TLS) { f.AllowedHostnames = []string{"127.0.0.1"} }, true},
		{"a client by another host", certs.Client, func(f *config.TLS) { f.AllowedHostnames = []string{"x"} }, false},
		{"a client by its common name", certs.Client, func(f *config.TLS) { f.AllowedCNs = []string{"member"} }, true},
		{"by its URI", certs.Peer, func(f *config.TLS) { f.AllowedHostnames = []string{"spiffe://example.org/member"} }, true},
		{"by a part of its URI", certs.Peer, func(f *config.TLS) { f.AllowedHostnames = []string{"spiffe://example.org/"} }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			files := files
			row.change(&files)
			k, lines := openKeeper(t, row.kind, files)
			_, err := ask(echo(t, k.Listen(listenLoopback(t), certs.GRPC)), k.Dial())
			if (err == nil) != row.admitted {
				t.Errorf("got %v, want to be admitted: %t", err, row.admitted)
			}
			if !row.admitted {
				lines.await(t, "none of those that are admitted")
			}
			if n := k.Refused(); (n == 0) != row.admitted {
				t.Errorf("%d refusals are counted", n)
			}
		})
	}
}

// Ensure that one port can serve both kinds, and that HTTP/1.1 is spoken with a client that can speak both.
func TestKeeper_ListenEither(t *testing.T) {
	k, _ := openKeeper(t, certs.Client, config.TLS{Auto: true})
	address := echo(t, k.ListenEither(listenLoopback(t), certs.GRPCAndHTTP))
	if _, err := ask(address, nil); err != nil {
		t.Errorf("unencrypted: %v", err)
	}
	for _, row := range []struct {
		offers []string
		want   string
	}{{[]string{"h2"}, "h2"}, {[]string{"h2", "http/1.1"}, "http/1.1"}, {[]string{"http/1.1"}, "http/1.1"}, {nil, ""}} {
		client := k.Dial()
		client.NextProtos = row.offers
		state, err := ask(address, client)
		if err != nil || state.NegotiatedProtocol != row.want {
			t.Errorf("%v: got %q, %v, want %q", row.offers, state.NegotiatedProtocol, err, row.want)
		}
	}
}

// Ensure that versions are kept to.
func TestKeeper_versions(t *testing.T) {
	c := config.Default()
	c.Storage.DataDir = t.TempDir()
	c.TLS.Client.Auto = true
	c.TLS.MinVersion = tls.VersionTLS13
	k, err := certs.Open(certs.Client, &c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	address := echo(t, k.Listen(listenLoopback(t), certs.HTTP))
	old := k.Dial()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, err := ask(address, old); err == nil || !strings.Contains(err.Error(), "protocol version not supported") {
		t.Errorf("TLS 1.2: got %v", err)
	}
	if state, err := ask(address, k.Dial()); err != nil || state.Version != tls.VersionTLS13 {
		t.Errorf("TLS 1.3: got %v %v", state.Version, err)
	}
}

// Ensure that a certificate that was made is kept for the next start, and made anew when it is damaged.
func TestOpen_selfSigned(t *testing.T) {
	c := config.Default()
	c.Storage.DataDir = t.TempDir()
	c.TLS.Peer.Auto = true
	serial := func() string {
		t.Helper()
		k, err := certs.Open(certs.Peer, &c, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		state, err := ask(echo(t, k.Listen(listenLoopback(t), certs.GRPC)), k.Dial())
		if err != nil {
			t.Fatal(err)
		}
		return state.PeerCertificates[0].SerialNumber.String()
	}
	first := serial()
	if second := serial(); second != first {
		t.Error("a restart made another certificate")
	}
	certstest.Replace(t, filepath.Join(c.Storage.DataDir, "certs", "peer", "cert.pem"), nil)
	if third := serial(); third == first {
		t.Error("got the damaged certificate")
	}
}

// Ensure that a failure is one line with flag, file and cause.
func TestOpen_failures(t *testing.T) {
	dir := t.TempDir()
	a := certstest.New(t, "a")
	cert, key := a.Issue(dir, "one", certstest.Loopback)
	_, otherKey := a.Issue(dir, "two", certstest.Loopback)
	absent, garbage := filepath.Join(dir, "absent"), filepath.Join(dir, "garbage")
	certstest.Replace(t, garbage, []byte("garbage"))
	broken := filepath.Join(dir, "broken")
	certstest.Write(t, broken, "CERTIFICATE", []byte("garbage"))
	for _, row := range []struct {
		files config.TLS
		want  string
	}{
		{config.TLS{CertFile: absent, KeyFile: key}, "--peer-cert-file " + absent + ": no such file or directory"},
		{config.TLS{CertFile: cert, KeyFile: absent}, "--peer-key-file " + absent + ": no such file or directory"},
		{config.TLS{CertFile: cert, KeyFile: dir}, "--peer-key-file " + dir + ": is a directory"},
		{config.TLS{CertFile: garbage, KeyFile: key}, "--peer-cert-file " + garbage + ": holds no certificate"},
		{config.TLS{CertFile: broken, KeyFile: key}, "--peer-cert-file " + broken + ": x509: malformed certificate"},
		{config.TLS{CertFile: cert, KeyFile: otherKey}, "--peer-key-file " + otherKey + " with --peer-cert-file " + cert +
			": tls: private key does not match public key"},
		{config.TLS{CertFile: cert, KeyFile: key, ClientCertFile: cert, ClientKeyFile: absent},
			"--peer-client-key-file " + absent + ": no such file or directory"},
		{config.TLS{CertFile: cert, KeyFile: key, TrustedCAFile: key}, "--peer-trusted-ca-file " + key +
			": holds no certificate"},
	} {
		c := config.Default()
		c.TLS.Peer = row.files
		_, err := certs.Open(certs.Peer, &c, slog.New(slog.DiscardHandler))
		if err == nil || !strings.HasPrefix(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want one line with %q", err, row.want)
		}
	}
}
