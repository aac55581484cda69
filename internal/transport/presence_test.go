package transport_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

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
		{"somebody who does not speak", cluster, 2, "http://" + dumb.Addr().String(), transport.Unsure},
		{"an address that needs TLS", cluster, 2, "https://" + dumb.Addr().String(), transport.Unsure},
		{"no address", cluster, 2, "gopher://a:1", transport.Unsure},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		got, err := transport.Find(ctx, transport.Options{}, row.cluster, row.id, row.url)
		cancel()
		if got != row.want || (got == transport.Unsure) != (err != nil) {
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
