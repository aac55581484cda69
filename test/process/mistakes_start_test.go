package process_test

import (
	"context"
	"crypto/x509"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/server/certs/certstest"
)

// TestMistakes_start makes the mistakes of an operator who starts a member beside one that runs: with URLs, ports, schemes, names and
// certificates. Each process names the mistake, whether it ends or waits.
func TestMistakes_start(t *testing.T) {
	t.Parallel()
	e := startVoters(t, 1)
	m1 := e.nodes[0]
	peer, client := "http://"+m1.peer, m1.client
	dir := t.TempDir()
	mine, others := certstest.New(t, "mine"), certstest.New(t, "others")
	cert, key := mine.Issue(dir, "peer", net.IPv4(127, 0, 0, 1))
	ca, otherCA := mine.Publish(filepath.Join(dir, "ca.crt")), others.Publish(filepath.Join(dir, "other.crt"))
	strange, strangeKey := others.Issue(dir, "strange", net.IPv4(127, 0, 0, 1))
	secure := e.node("secure")
	e.gone = append(e.gone, secure)
	e.run(secure, "--name=secure", "--data-dir="+secure.dir, "--listen-client-urls="+secure.client,
		"--advertise-client-urls="+secure.client, "--listen-peer-urls=https://"+secure.peer,
		"--initial-advertise-peer-urls=https://"+secure.peer, "--peer-cert-file="+cert, "--peer-key-file="+key,
		"--peer-trusted-ca-file="+ca, "--peer-client-cert-auth", "--initial-cluster=secure=https://"+secure.peer)
	until(t, "secure serves", served(secure))

	for i, row := range []struct {
		name  string
		flags []string // OWN is the peer URL of the new process
		want  string
	}{
		{"the client port to join", []string{"--join=" + client}, "that is a client port of member "},
		{"the client port of a member to be joined", []string{"--initial-cluster=m1=" + client + ",new=OWN",
			"--initial-cluster-state=existing"}, "that is a client port of member "},
		{"the client port of a founder", []string{"--initial-cluster=m1=" + client + ",new=OWN"},
			client + " in --initial-cluster is a wrong URL: that is a client port of member "},
		{"https for http to join", []string{"--join=https://" + m1.peer}, "what answers there has no TLS, and the URL asks for it"},
		{"https for http of a founder", []string{"--initial-cluster=m1=https://" + m1.peer + ",new=OWN"},
			"what answers there has no TLS, and the URL asks for it"},
		{"http for https to join", []string{"--join=http://" + secure.peer}, "what answers there asks for TLS, and the URL does not"},
		{"another authority", []string{"--join=https://" + secure.peer, "--peer-trusted-ca-file=" + otherCA},
			"correct the scheme of --join, or --peer-trusted-ca-file"},
		{"a certificate of another authority", []string{"--join=https://" + secure.peer, "--peer-trusted-ca-file=" + ca,
			"--peer-cert-file=" + strange, "--peer-key-file=" + strangeKey}, "it does not take the certificate of this process"},
		{"no certificate", []string{"--join=https://" + secure.peer, "--peer-trusted-ca-file=" + ca},
			"it does not take the certificate of this process"},
		{"another token", []string{"--initial-cluster=m1=" + peer + ",new=OWN", "--initial-cluster-token=other"},
			"compare --initial-cluster and --initial-cluster-token of all"},
		{"its own name is missing", []string{"--initial-cluster=m1=" + peer}, "--initial-cluster does not name this member: add new="},
		{"the name of another", []string{"--join=" + peer, "--name=m1"}, "the name m1 belongs to member "},
		{"an address of another host", []string{"--listen-peer-urls=http://192.0.2.1:2380", "--initial-cluster=new=OWN"},
			"must name an address of this machine"},
		{"a port in use", []string{"--listen-client-urls=" + client, "--initial-cluster=new=OWN"},
			"stop the process that listens there"},
		{"no scheme", []string{"--initial-cluster=new=" + m1.peer}, "lacks a scheme: write http://" + m1.peer},
		{"a slash at the end", []string{"--initial-cluster=new=http://" + m1.peer + "/"}, "write http://" + m1.peer},
		{"localhost among hosts", []string{"--initial-cluster=m3=http://192.0.2.9:2380,new=OWN"},
			"cannot reach if it is on another machine; set --initial-advertise-peer-urls"},
	} {
		n := e.node("new" + string(rune('a'+i)))
		e.gone = append(e.gone, n)
		own := "http://" + n.peer
		args := []string{"--name=new", "--data-dir=" + n.dir, "--listen-client-urls=" + n.client, "--advertise-client-urls=" + n.client,
			"--listen-peer-urls=" + own, "--initial-advertise-peer-urls=" + own}
		for _, flag := range row.flags {
			args = append(args, strings.ReplaceAll(flag, "OWN", own))
		}
		e.run(n, args...)
		until(t, row.name+" is named: "+row.want, func(context.Context) bool { return strings.Contains(tail(n.log, 1<<20), row.want) })
		n.kill()
	}

	old, oldKey := mine.IssueAs(dir, "old", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)})
	late := e.node("late")
	e.gone = append(e.gone, late)
	at := strings.TrimPrefix(late.client, "http://")
	e.run(late, "--name=late", "--data-dir="+late.dir, "--listen-client-urls=https://"+at, "--advertise-client-urls=https://"+at,
		"--listen-peer-urls=http://"+late.peer, "--initial-advertise-peer-urls=http://"+late.peer,
		"--initial-cluster=late=http://"+late.peer, "--cert-file="+old, "--key-file="+oldKey)
	until(t, "late serves", served(late))
	for _, line := range [][]string{{"status"}, {"put", "a", "1"}} {
		line = append(line, "--endpoints=https://"+at, "--cacert="+ca, "--timeout=1s")
		if out := e.failing(line); !strings.Contains(out, "its certificate has expired") {
			t.Errorf("an expired certificate is not named by %q:\n%s", line, out)
		}
	}
}
