package transport_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/transport"
)

// Ensure that a look at an address tells the member from another process, from silence, and from what is not known.
func TestFind(t *testing.T) {
	b := start(t, 2)
	b.call = func(context.Context, string, []byte) ([]byte, error) {
		return nil, status.Error(codes.Unimplemented, "unknown request")
	}
	dumb, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer dumb.Close()
	rpc := grpc.NewServer()
	web := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.NotFoundHandler()}
	servers := map[string]string{}
	for name, serve := range map[string]func(net.Listener) error{"grpc": rpc.Serve, "web": web.Serve} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = serve(l) }()
		servers[name] = "http://" + l.Addr().String()
	}
	defer rpc.Stop()
	defer func() { _ = web.Close() }()
	nobody := "http://" + testnet.Address(t)
	for _, row := range []struct {
		name    string
		cluster consensus.ClusterID
		id      consensus.MemberID
		url     string
		want    transport.Presence
	}{
		{"the member", cluster, 2, b.url, transport.Present},
		{"another member", cluster, 3, b.url, transport.Another},
		{"a member of another cluster", cluster + 1, 2, b.url, transport.Another},
		{"nobody", cluster, 2, nobody, transport.Silent},
		{"a gRPC server that knows no members", cluster, 2, servers["grpc"], transport.NoPeerPort},
		{"a web server", cluster, 2, servers["web"], transport.NoPeerPort},
		{"somebody who does not speak", cluster, 2, "http://" + dumb.Addr().String(), transport.Unsure},
		{"an address that needs TLS", cluster, 2, "https://" + dumb.Addr().String(), transport.Unsure},
		{"no address", cluster, 2, "gopher://a:1", transport.Unsure},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		got, err := transport.Find(ctx, transport.Options{}, identity.Sought{Cluster: row.cluster, Member: row.id}, row.url)
		cancel()
		if got != row.want || (got == transport.Unsure || got == transport.NoPeerPort) != (err != nil) {
			t.Errorf("%s: got %d, %v, want %d", row.name, got, err, row.want)
		}
	}
}

// Ensure that a host that cannot be reached does not pass for one on which no process listens.
func TestFind_unreachable(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := transport.Find(ctx, transport.Options{}, identity.Sought{Cluster: cluster, Member: 2}, "http://127.0.0.1:1")
	if got != transport.Unsure || !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("got %d, %v", got, err)
	}
}

// Ensure that a process without data is not taken for the member as which it was started, nor one with another data directory than
// that to which the member is bound, and that a process that does not say what it has is taken as before.
func TestFind_empty(t *testing.T) {
	empty := func(o *transport.Options) { o.Self.Empty = true }
	bare := start(t, 2) // it has no directory
	begins, lost, runs := start(t, 2, disk(2, 5), empty), start(t, 2, disk(9, 5), empty), start(t, 2, disk(2, 5))
	for _, row := range []struct {
		name  string
		at    *member
		bound byte
		want  transport.Presence
	}{
		{"the member", runs, 2, transport.Present},
		{"the member, which is not bound", runs, 0, transport.Present},
		{"a member with another directory", runs, 3, transport.Another},
		{"a member that has none", bare, 2, transport.Present},
		{"a process without data", lost, 2, transport.Empty},
		{"and the member is not bound", lost, 0, transport.Empty},
		{"a process that makes the data of the member now", begins, 2, transport.Present},
	} {
		sought := identity.Sought{Cluster: cluster, Member: 2, Storage: consensus.StorageID{row.bound}}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		got, err := transport.Find(ctx, transport.Options{}, sought, row.at.url)
		cancel()
		if got != row.want || err != nil {
			t.Errorf("%s: got %d, %v, want %d", row.name, got, err, row.want)
		}
	}
}

// Ensure that a member which is connected from elsewhere confirms its streams although a process without data answers at another
// URL that the configuration has of it, and that this process is told of as long as it is there.
func TestTransport_Strays(t *testing.T) {
	a, b := start(t, 1, disk(1, 1)), start(t, 2, disk(2, 5))
	ghost := start(t, 2, disk(9, 0), func(o *transport.Options) { o.Self.Empty = true })
	members := boundTo(a, b)
	members[1].Name, members[1].PeerURLs = "m2", []string{ghost.url, b.url}
	a.SetPeers(members)
	b.SetPeers(members)
	b.waitFor(1)
	b.Send([]consensus.Message{heartbeat(2, 1, 1)})
	if m := a.next(); m.From != 2 {
		t.Errorf("got %+v", m)
	}
	a.waitFor(2)
	members[1].PeerURLs = []string{b.url}
	a.SetPeers(members)
	for url, want := range map[string]transport.Presence{ghost.url: transport.Empty, b.url: transport.Present} {
		if got, err := a.Find(t.Context(), 2, url); got != want || err != nil {
			t.Errorf("at %s: %d, %v, want %d", url, got, err, want)
		}
	}
	a.LookForStrays(t.Context())
	want := "m2 runs with its data at " + b.url + ", and a process without data, which was started as m2, runs at " + ghost.url +
		" (stop its unit on host 127.0.0.1)"
	if got := a.Strays(); len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("got %q, want %q", got, want)
	}
	_ = ghost.Close()
	a.LookForStrays(t.Context())
	if got := a.Strays(); len(got) != 0 {
		t.Errorf("it has gone, and is told of: %q", got)
	}
}
