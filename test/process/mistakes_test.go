package process_test

import (
	"context"
	"crypto/x509"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/server/certs/certstest"
)

// TestMistakes makes the mistakes of an operator with endpoints, schemes and certificates. Each is named, by status and by requests.
func TestMistakes(t *testing.T) {
	t.Parallel()
	e := planVoters(t, 2)
	clear, secure := e.nodes[0], e.nodes[1]
	dir := t.TempDir()
	mine, others := certstest.New(t, "mine"), certstest.New(t, "others")
	cert, key := mine.Issue(dir, "server", net.IPv4(127, 0, 0, 1))
	client, clientKey := mine.Issue(dir, "client", net.IPv4(127, 0, 0, 1))
	strange, strangeKey := others.Issue(dir, "strange", net.IPv4(127, 0, 0, 1))
	far, farKey := mine.IssueAs(dir, "far", &x509.Certificate{DNSNames: []string{"m9.example.com"}})
	ca, otherCA := mine.Publish(filepath.Join(dir, "ca.crt")), others.Publish(filepath.Join(dir, "other.crt"))
	start := func(n *node, more ...string) {
		e.run(n, append([]string{"--name=" + n.name, "--data-dir=" + n.dir, "--listen-client-urls=" + n.client,
			"--advertise-client-urls=" + n.client, "--listen-peer-urls=http://" + n.peer,
			"--initial-advertise-peer-urls=http://" + n.peer}, more...)...)
		until(t, n.name+" serves", served(n))
	}
	start(clear)
	plain := strings.TrimPrefix(secure.client, "http://")
	secure.client = "https://" + plain
	start(secure, "--cert-file="+cert, "--key-file="+key, "--trusted-ca-file="+ca, "--client-cert-auth")
	wrong := &node{name: "m3", client: "https://" + testnet.Address(t), peer: testnet.Address(t), dir: filepath.Join(e.dir, "m3"),
		log: filepath.Join(e.dir, "m3.log")}
	e.gone = append(e.gone, wrong)
	start(wrong, "--cert-file="+far, "--key-file="+farKey)
	at := strings.TrimPrefix(clear.client, "http://")
	own := []string{"--cacert=" + ca, "--cert=" + client, "--key=" + clientKey}
	for _, row := range []struct {
		name, endpoint string
		flags          []string
		want           string
	}{
		{"https at a port without TLS", "https://" + at, []string{"--cacert=" + ca}, "it does not speak TLS: write http://" + at},
		{"http at a port with TLS", "http://" + plain, nil, "it may speak TLS (write https://)"},
		{"an unknown authority", secure.client, []string{"--cacert=" + otherCA}, "signed by no authority that this command trusts"},
		{"no certificate", secure.client, []string{"--cacert=" + ca}, "it asks for a certificate of the client: give --cert FILE"},
		{"another's certificate", secure.client, []string{"--cacert=" + ca, "--cert=" + strange, "--key=" + strangeKey},
			"it does not take the certificate of --cert"},
		{"a certificate of another host", wrong.client, own, "its certificate is not for this host"},
		{"a peer port", clear.peer, nil, "--listen-peer-urls"},
	} {
		endpoint := "--endpoints=" + row.endpoint
		for _, command := range [][]string{{"status"}, {"put", "a", "1"}} {
			args := append(append(append([]string{}, command...), endpoint, "--timeout=1s"), row.flags...)
			if out := e.failing(args); !strings.Contains(out, row.want) {
				t.Errorf("%s: `quorate %s` says nothing of it, want %q:\n%s", row.name, strings.Join(command, " "), row.want, out)
			}
		}
	}
}

// TestMistakes_noQuorum loses two of three members. The third one is not told as one that does not answer, and status says which
// to start.
func TestMistakes_noQuorum(t *testing.T) {
	t.Parallel()
	e := startVoters(t, 3)
	for _, n := range e.nodes[1:] {
		n.kill()
	}
	endpoint := "--endpoints=" + e.nodes[0].client
	until(t, "writes fail for want of a leader", func(context.Context) bool {
		return strings.Contains(e.failing([]string{"put", "a", "1", "--timeout=1s", endpoint}), "it may have no leader")
	})
	if out := e.failing([]string{"status", endpoint}); !strings.Contains(out, "of its voters 1 answer: start 1 more of m") {
		t.Errorf("quorate status says:\n%s", out)
	}
}

// served reports whether a member has said that it serves clients.
func served(n *node) func(context.Context) bool {
	return func(context.Context) bool {
		return strings.Contains(tail(n.log, 1<<20), "ready to serve client requests")
	}
}

// failing runs a command that must fail, and returns what it says.
func (e *elastic) failing(args []string) string {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, e.binary, args...).CombinedOutput()
	if err == nil {
		e.t.Errorf("quorate %s succeeds:\n%s", strings.Join(args, " "), out)
	}
	return string(out)
}
