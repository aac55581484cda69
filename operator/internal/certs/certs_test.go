package certs_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/operator/internal/certs"
)

// Ensure that certificates are good for both usages and all hosts, and that each reason to renew one is seen.
func TestIssue(t *testing.T) {
	now := time.Now()
	authority, err := certs.NewAuthority("a", now)
	if err != nil {
		t.Fatal(err)
	}
	other, err := certs.NewAuthority("b", now)
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{"m1.kv-members.ns.svc", "kv.ns.svc"}
	pair, err := certs.Issue(authority, "m1", hosts, 30*time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(pair.Cert)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Cert)
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if _, err := cert.Verify(x509.VerifyOptions{DNSName: hosts[1], Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			t.Error(err)
		}
	}
	for _, row := range []struct {
		name  string
		pair  certs.Pair
		by    []byte
		hosts []string
		at    time.Time
		want  string
	}{
		{"fresh", pair, authority.Cert, hosts, now, ""},
		{"half of its life", pair, authority.Cert, hosts, now.Add(15 * time.Hour), ""},
		{"two thirds of its life", pair, authority.Cert, hosts, now.Add(21 * time.Hour), "two thirds"},
		{"other hosts", pair, authority.Cert, hosts[:1], now, "it is for"},
		{"another authority", pair, other.Cert, hosts, now, "unknown authority"},
		{"another key", certs.Pair{Cert: pair.Cert, Key: other.Key}, authority.Cert, hosts, now, "private key"},
		{"none", certs.Pair{}, authority.Cert, hosts, now, "no certificate"},
	} {
		if got := certs.Due(row.pair, row.by, row.hosts, row.at); !strings.Contains(got, row.want) || row.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	if certs.AuthorityOld(authority, now) || !certs.AuthorityOld(authority, now.AddDate(6, 0, 0)) {
		t.Error("an authority is renewed half way")
	}
}

// Ensure that a former authority stays trusted until its end, and none twice.
func TestTrusted(t *testing.T) {
	now := time.Now()
	former, _ := certs.NewAuthority("a", now.AddDate(-6, 0, 0))
	dead, _ := certs.NewAuthority("a", now.AddDate(-12, 0, 0))
	current, _ := certs.NewAuthority("a", now)
	got := certs.Trusted(current.Cert, bytes.Join([][]byte{former.Cert, dead.Cert, current.Cert, former.Cert}, nil), now)
	if want := string(current.Cert) + string(former.Cert); string(got) != want {
		t.Errorf("got %d certificates", strings.Count(string(got), "BEGIN"))
	}
}
