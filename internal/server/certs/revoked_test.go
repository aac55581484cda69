package certs_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/server/certs"
	"github.com/quorate/quorate/internal/server/certs/certstest"
)

// Ensure that a revoked certificate is refused on both ends, that a list of another authority with the same numbers revokes
// nothing, and that a new list counts from the next connection on.
func TestKeeper_revoked(t *testing.T) {
	dir := t.TempDir()
	a := certstest.New(t, "a")
	files := config.TLS{TrustedCAFile: a.Publish(filepath.Join(dir, "ca.crt")), CRLFile: filepath.Join(dir, "crl.pem")}
	files.CertFile, files.KeyFile = a.Issue(dir, "member", certstest.Loopback)
	other, _ := a.Issue(dir, "other", certstest.Loopback)
	asPEM := func(lists ...[]byte) []byte {
		var all bytes.Buffer
		for _, der := range lists {
			all.Write(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
		}
		return all.Bytes()
	}
	certstest.Replace(t, files.CRLFile, asPEM(a.Revoke(other), certstest.New(t, "b").Revoke(files.CertFile)))
	k, lines := openKeeper(t, certs.Peer, files)
	unaware := files
	unaware.CRLFile = ""
	client, _ := openKeeper(t, certs.Peer, unaware)
	address := echo(t, k.Listen(listenLoopback(t), certs.GRPC))
	if _, err := ask(address, client.Dial()); err != nil {
		t.Fatalf("not revoked: %v", err)
	}
	certstest.Replace(t, files.CRLFile, []byte("-----BEGIN X509 CRL-----"))
	if _, err := ask(address, client.Dial()); err != nil {
		t.Errorf("beside a list that does not decode the one before counts: %v", err)
	}
	certstest.Replace(t, files.CRLFile, a.Revoke(files.CertFile, other))
	if _, err := ask(address, client.Dial()); err == nil {
		t.Error("revoked: was served")
	}
	lines.await(t, "is revoked")
	if _, err := ask(echo(t, client.Listen(listenLoopback(t), certs.GRPC)), k.Dial()); err == nil ||
		!strings.Contains(err.Error(), "is revoked") {
		t.Errorf("dialling a revoked one: %v", err)
	}
	var soonest time.Time
	for _, e := range k.Expiries() {
		if e.What == "revocation-list" {
			soonest = e.At
		}
		if due := e.Due(time.Now()); due {
			t.Errorf("%+v is due", e)
		}
		if !e.Due(e.At) {
			t.Errorf("%+v is not due when it expires", e)
		}
		if e.Late(time.Now()) || !e.Late(e.At) {
			t.Errorf("%+v is late while there is time, or not when there is none", e)
		}
	}
	if left := time.Until(soonest); left < 50*time.Minute || left > time.Hour {
		t.Errorf("the list expires in %v", left)
	}
}

func TestOpen_revocationListDamaged(t *testing.T) {
	dir := t.TempDir()
	a := certstest.New(t, "a")
	files := config.TLS{TrustedCAFile: a.Publish(filepath.Join(dir, "ca.crt")), CRLFile: filepath.Join(dir, "crl")}
	good := a.Revoke()
	for name, content := range map[string][]byte{
		"empty": nil, "cut off": good[:len(good)-1], "another kind": []byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"),
		"a certificate": must(os.ReadFile(files.TrustedCAFile)),
	} {
		certstest.Replace(t, files.CRLFile, content)
		c := config.Config{}
		c.TLS.Peer = files
		if _, err := certs.Open(certs.Peer, &c, newLogs().logger()); err == nil || !strings.Contains(err.Error(), "--peer-crl-file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Ensure that a certificate speaks for a member at a host that it names, and that one of a client speaks for none.
func TestKeeper_PeerCheck(t *testing.T) {
	dir := t.TempDir()
	a := certstest.New(t, "a")
	read := func(name string, template *x509.Certificate) *x509.Certificate {
		file, _ := a.IssueAs(dir, name, template)
		block, _ := pem.Decode(must(os.ReadFile(file)))
		return must(x509.ParseCertificate(block.Bytes))
	}
	client := read("client", &x509.Certificate{})
	host := read("host", &x509.Certificate{DNSNames: []string{"m1.example.com"}, IPAddresses: []net.IP{certstest.Loopback}})
	roots := a.Publish(filepath.Join(dir, "ca.crt"))
	for _, row := range []struct {
		name  string
		files config.TLS
		cert  *x509.Certificate
		hosts []string
		want  bool
	}{
		{"its host", config.TLS{}, host, []string{"m2", "m1.example.com"}, true},
		{"its address", config.TLS{}, host, []string{"127.0.0.1"}, true},
		{"another host", config.TLS{}, host, []string{"m2.example.com", "127.0.0.2"}, false},
		{"no host is known", config.TLS{}, host, nil, false},
		{"a client's", config.TLS{}, client, []string{"client", "m1.example.com"}, false},
		{"a client's that was admitted by name", config.TLS{AllowedCNs: []string{"client"}}, client, []string{"m1"}, true},
		{"another host, admitted by name", config.TLS{AllowedCNs: []string{"host"}}, host, []string{"m2"}, false},
		{"a client's, and names do not count", config.TLS{SkipClientSANVerification: true}, client, []string{"m1"}, true},
	} {
		row.files.TrustedCAFile = roots
		k, _ := openKeeper(t, certs.Peer, row.files)
		if err := k.PeerCheck()(row.cert, row.hosts); (err == nil) != row.want {
			t.Errorf("%s: %v, want %v", row.name, err, row.want)
		}
	}
	if k, _ := openKeeper(t, certs.Peer, config.TLS{}); k.PeerCheck() != nil {
		t.Error("certificates that nobody verifies prove something")
	}
}
