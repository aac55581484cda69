package transport_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/testnet"
	"github.com/quorate/quorate/internal/transport"
)

// Ensure that a look at an address tells the member from somebody else, from silence, and from what is not known.
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
		got, err := transport.Find(ctx, transport.Options{}, row.cluster, row.id, row.url)
		cancel()
		if got != row.want || (got == transport.Unsure || got == transport.NoPeerPort) != (err != nil) {
			t.Errorf("%s: got %d, %v, want %d", row.name, got, err, row.want)
		}
	}
}

// Ensure that a host that cannot be reached does not pass for one on which nobody listens.
func TestFind_unreachable(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := transport.Find(ctx, transport.Options{}, cluster, 2, "http://127.0.0.1:1")
	if got != transport.Unsure || !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("got %d, %v", got, err)
	}
}
