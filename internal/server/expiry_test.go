package server_test

import (
	"crypto/x509"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/server/certs/certstest"
)

// Ensure that a member says in its status that a certificate expires soon, which is what `quorate status` prints, and says nothing
// of one that was replaced in time.
func TestServer_Start_certificateExpires(t *testing.T) {
	for name, tc := range map[string]struct {
		left time.Duration
		want string
	}{
		"an hour of two hundred is left":       {time.Hour + 30*time.Second, "certificate of m1 for clients expires in 60 minutes, at "},
		"a day and a half of two weeks is":     {36*time.Hour + 30*time.Second, "certificate of m1 for clients expires in 36 hours, at "},
		"fifty hours are, and it was for more": {50*time.Hour + 30*time.Second, ""},
	} {
		dir, authority := t.TempDir(), certstest.New(t, "first")
		now := time.Now()
		template := &x509.Certificate{IPAddresses: []net.IP{certstest.Loopback}, NotBefore: now.Add(tc.left - 240*time.Hour),
			NotAfter: now.Add(tc.left)}
		cert, key := authority.IssueAs(dir, "member", template)
		s := &secured{t: t, dir: dir, authority: authority}
		authority.Publish(filepath.Join(dir, "ca.crt"))
		started := startAll(t, []config.Config{loadConfig(t, "--name=m1", "--data-dir", filepath.Join(dir, "data"), "--cert-file", cert,
			"--key-file", key, "--listen-client-urls=https://127.0.0.1:0", "--listen-peer-urls=http://127.0.0.1:0")})[0]
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + started.ClientAddresses()[0].String()},
			TLS: s.trusting()})
		if err != nil {
			t.Fatal(err)
		}
		status, err := client.Status(t.Context(), client.Endpoints()[0])
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(status.Errors, "; ")
		if strings.Contains(got, "expires") != (tc.want != "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: its status says %q, want %q", name, got, tc.want)
		}
		_ = client.Close()
	}
}
