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
type Presence = identity.Presence

// The findings.
const (
	Silent     = identity.Silent
	Present    = identity.Present
	Another    = identity.Another
	Unsure     = identity.Unsure
	NoPeerPort = identity.NoPeerPort
)

// ErrUnreachable means that a member's host did not answer at all: it may be down, or the network between may be.
var ErrUnreachable = errors.New("transport: the host cannot be reached")

// methodFind asks a process for its cluster and its member id, and for nothing else.
const methodFind = "transport.find"

// found answers methodFind. Which data directory speaks for this member is for members only.
func (t *Transport) found() *outFrame {
	own := t.guard.claims.Own()
	own.Storage = consensus.NoStorage
	return answerFrame(hello{version: t.version, claim: own}.append(nil))
}

// Find finds out whether a member listens at a peer URL, without asking it for anything: it answers although it has no
// leader. The error says more about Unsure, and is a *NoPeerPortError for NoPeerPort. Only the TLS and time options are used.
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
		return judge(&identity.Sight{Refused: true}, cluster, id), nil
	case err != nil: // a broken network looks the same as a broken host, and the member may serve others
		return judge(&identity.Sight{}, cluster, id), fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if err := conn.Close(); err != nil {
		return Unsure, fmt.Errorf("transport: close a connection to %s: %w", url, err)
	}
	sight, err := look(ctx, &o, hello{version: protocolVersion, to: id, claim: identity.Claim{Cluster: cluster}}, url)
	presence := judge(&sight, cluster, id)
	switch {
	case presence == Present || presence == Another:
		return presence, nil
	case err == nil:
		err = errors.New("what answers does not say which member it is")
	}
	return presence, err
}

func judge(s *identity.Sight, cluster consensus.ClusterID, id consensus.MemberID) Presence {
	return s.Judge(cluster, id, identity.Rules{})
}

// look asks whoever listens at a peer URL who that is. The error says more about a sight without a claim.
func look(ctx context.Context, o *Options, sent hello, url string) (identity.Sight, error) {
	answer, failed := callURL(ctx, o, sent, url, methodFind, nil)
	if failed == nil {
		h, _, err := decodeHello(answer)
		if err != nil {
			return identity.Sight{}, fmt.Errorf("what answers does not say which member it is: %w", err)
		}
		return identity.Sight{Claim: &h.claim}, nil
	}
	named := identity.Read(status.Convert(failed).Message())
	if named != nil && status.Code(failed) == codes.FailedPrecondition {
		return identity.Sight{Refusal: named}, named
	}
	var other *NoPeerPortError
	if errors.As(Explain(ctx, *o, url, failed), &other) {
		return identity.Sight{NoPeerPort: true}, other
	}
	if errors.Is(failed, ErrNeedsTLS) {
		return identity.Sight{}, failed
	}
	return identity.Sight{}, errors.New(status.Convert(failed).Message())
}

// Find finds out whether a member of this cluster listens at a peer URL.
func (t *Transport) Find(ctx context.Context, id consensus.MemberID, url string) (Presence, error) {
	return Find(ctx, t.options, t.options.Self.Cluster, id, url)
}
