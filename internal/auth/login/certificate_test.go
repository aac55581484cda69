package login_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"

	"github.com/quorate/quorate/internal/auth/login"
)

func TestCommonName(t *testing.T) {
	chain := func(names ...string) (chain []*x509.Certificate) {
		for _, name := range names {
			chain = append(chain, &x509.Certificate{Subject: pkix.Name{CommonName: name}})
		}
		return chain
	}
	for _, row := range []struct {
		name  string
		state *tls.ConnectionState
		user  string
		ok    bool
	}{
		{"no TLS", nil, "", false},
		{"no certificate", &tls.ConnectionState{}, "", false},
		{"a certificate that nobody verified", &tls.ConnectionState{PeerCertificates: chain("alice")}, "", false},
		{"a chain", &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{chain("alice", "authority")}}, "alice", true},
		{"two chains", &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{chain("alice"), chain("bob")}}, "alice", true},
		{"an empty chain first", &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}, chain("bob")}}, "bob", true},
		{"an empty name", &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{chain("", "root"), chain("bob")}}, "", false},
	} {
		if user, ok := login.CommonName(row.state); user != row.user || ok != row.ok {
			t.Errorf("%s: got %q, %v, want %q, %v", row.name, user, ok, row.user, row.ok)
		}
	}
}
