package process_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/testnet"
)

// Ensure that a member with an encrypted data directory starts, serves, and makes and uses certificates, where Go refuses all
// cryptography that FIPS 140-3 does not approve.
func TestFIPS_only(t *testing.T) {
	buildBinary(t)
	t.Setenv("GODEBUG", "fips140=only")
	scratch := t.TempDir()
	key := filepath.Join(scratch, "key")
	if err := os.WriteFile(key, []byte("0123456789abcdef0123456789abcde\xff"), 0o400); err != nil {
		t.Fatal(err)
	}
	c := startCluster(t, 1, "--encryption-key-file="+key, "--encryption-scratch-dir="+scratch)
	client := c.connect(c.nodes...)
	defer client.Close()
	for i := range 10 {
		if _, err := client.Put(t.Context(), fmt.Sprint(i), "v"); err != nil {
			t.Fatal(err)
		}
	}
	backup, err := client.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, backup); err != nil || n == 0 {
		t.Errorf("backup: %d bytes, %v", n, err)
	}
	if err := backup.Close(); err != nil {
		t.Fatal(err)
	}
}

// Ensure the same of a member that makes its own certificates.
func TestFIPS_autoTLS(t *testing.T) {
	c := &cluster{t: t, binary: buildBinary(t)}
	t.Setenv("GODEBUG", "fips140=only")
	dir := t.TempDir()
	n := &node{name: "m1", client: "https://" + testnet.Address(t), peer: testnet.Address(t), dir: dir,
		log: filepath.Join(dir, "m1.log")}
	c.run(n, "--name=m1", "--data-dir="+filepath.Join(dir, "data"), "--auto-tls", "--peer-auto-tls",
		"--listen-client-urls="+n.client, "--advertise-client-urls="+n.client, "--listen-peer-urls=https://"+n.peer,
		"--initial-advertise-peer-urls=https://"+n.peer, "--initial-cluster=m1=https://"+n.peer)
	defer n.kill()
	trusting := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer trusting.CloseIdleConnections()
	deadline, poll := time.After(30*time.Second), time.NewTicker(20*time.Millisecond)
	defer poll.Stop()
	for {
		answer, err := trusting.Get(n.client + "/readyz")
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-poll.C:
		case <-n.exited:
			t.Fatalf("the member exited:\n%s", tail(n.log, 3000))
		case <-deadline:
			t.Fatalf("not ready after 30s: %v\n%s", err, tail(n.log, 3000))
		}
	}
}
