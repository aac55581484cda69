package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// Presence is what a look at one peer URL has found.
type Presence uint8

// The findings.
const (
	Silent  Presence = 0 // the host refuses the connection: nobody listens there
	Present Presence = 1 // the member answers
	Another Presence = 2 // somebody else answers: another member, or another cluster
	Unsure  Presence = 3 // somebody listens and does not say who, or the host cannot be reached
)

// ErrUnreachable means that a member's host did not answer at all: it may be down, or the network between may be.
var ErrUnreachable = errors.New("transport: the host cannot be reached")

// methodFind is a method that no member answers. A member that says so has checked that the call is meant for it.
const methodFind = "transport.find"

// Find finds out whether a member listens at a peer URL, without asking it for anything: it answers although it has no
// leader. The error says more about Unsure. Only the TLS and time options are used.
func Find(
	ctx context.Context, o Options, cluster consensus.ClusterID, id consensus.MemberID, url string,
) (Presence, error) {
	o.setDefaults()
	a, err := parseURL(url)
	if err != nil {
		return Unsure, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, a.network, a.target)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), a.network == "unix" && errors.Is(err, os.ErrNotExist):
		return Silent, nil
	case err != nil: // a broken network looks the same as a broken host, and the member may serve others
		return Unsure, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if err := conn.Close(); err != nil {
		return Unsure, fmt.Errorf("transport: close a connection to %s: %w", url, err)
	}
	h := hello{version: protocolVersion, to: id, claim: identity.Claim{Cluster: cluster}}
	_, err = callURL(ctx, &o, h, url, methodFind, nil)
	switch code := status.Code(err); {
	case err == nil, code == codes.Unimplemented:
		return Present, nil
	case code == codes.FailedPrecondition:
		return Another, nil
	case errors.Is(err, ErrNeedsTLS):
		return Unsure, err
	}
	return Unsure, errors.New(status.Convert(err).Message())
}

// Find finds out whether a member of this cluster listens at a peer URL.
func (t *Transport) Find(ctx context.Context, id consensus.MemberID, url string) (Presence, error) {
	return Find(ctx, t.options, t.options.Self.Cluster, id, url)
}
