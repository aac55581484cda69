package process_test

import (
	"crypto/x509"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/server/certs/certstest"
)

// dressInTLS lets members speak TLS with each other. The certificate of the last one has been good for a time, and will be for
// another one.
func (c *cluster) dressInTLS(since, left time.Duration) {
	c.t.Helper()
	c.certs = c.t.TempDir()
	authority := certstest.New(c.t, "members")
	roots := authority.Publish(filepath.Join(c.certs, "roots.crt"))
	initial := ""
	for i, n := range c.nodes {
		if i > 0 {
			initial += ","
		}
		initial += n.name + "=https://" + n.proxy.address()
	}
	for i, n := range c.nodes {
		template := loopback(time.Hour, 24*time.Hour)
		if i == len(c.nodes)-1 {
			template = loopback(since, left)
		}
		cert, key := authority.IssueAs(c.certs, n.name, template)
		n.flags = []string{"--listen-peer-urls=https://" + n.peer, "--initial-advertise-peer-urls=https://" + n.proxy.address(),
			"--initial-cluster=" + initial, "--peer-cert-file=" + cert, "--peer-key-file=" + key, "--peer-trusted-ca-file=" + roots,
			"--peer-client-cert-auth"}
	}
}

// loopback is a certificate of this machine that has been good for a time, and will be for another one.
func loopback(since, left time.Duration) *x509.Certificate {
	return &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-since),
		NotAfter: time.Now().Add(left)}
}

// otherBuild is the program with another version.
func otherBuild(t *testing.T) string { return anotherBinary(t, otherVersion) }
