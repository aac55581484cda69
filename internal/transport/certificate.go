package transport

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"

	"github.com/quorate/quorate/internal/base/tlsconn"
	"github.com/quorate/quorate/internal/identity"
)

// certified refuses a claim to be a member by a process that shows a certificate for another place: one that the same
// authority has made for a client, say, or for another host. It comes before anything that the claim says is believed or
// remembered. Where a member was moved, the configuration may not know it yet: what counts then is where it says that it is,
// and that it has the member's data directory, which the guard judges.
func (t *Transport) certified(ctx context.Context, c *identity.Claim) error {
	hosts := hostsOf([]string{c.Address})
	config := t.guard.config.Load()
	if m, ok := config.Member(c.Member); ok {
		hosts = append(hosts, hostsOf(m.PeerURLs)...)
	}
	err := t.checkCertificate(ctx, hosts)
	if err == nil {
		return nil
	}
	return t.turnAway(c, identity.WrongCertificate, fmt.Sprintf("the process at %s calls itself member %v, and %v: give it a "+
		"certificate that names the host of its peer URLs", c.Address, c.Member, err))
}

// bound tells whether the caller of an open method shows a certificate that is bound to the member that it calls itself: it
// names a host at which the configuration, and not the caller, has that member.
func (t *Transport) bound(ctx context.Context, c *identity.Claim, method string) bool {
	// Of other methods the guard has judged the claim.
	return slices.Contains(t.options.OpenMethods, method) && t.evidence(ctx, c) == identity.Certified
}

// evidence tells what speaks for the claim of the process that has opened a connection.
func (t *Transport) evidence(ctx context.Context, c *identity.Claim) identity.Evidence {
	if m, known := t.guard.config.Load().Member(c.Member); known && t.ShowsCertificateFor(ctx, m.PeerURLs) {
		return identity.Certified
	}
	return identity.Said
}

// checkCertificate asks for the certificate of a call's connection, if it shows one.
func (t *Transport) checkCertificate(ctx context.Context, hosts []string) error {
	if cert := t.certificateOf(ctx); cert != nil {
		return t.options.Identity.CheckCertificate(cert, hosts)
	}
	return nil
}

// certificateOf returns the verified certificate of the connection that a call came by; nil: it has none, or certificates prove
// nothing here.
func (t *Transport) certificateOf(ctx context.Context) *x509.Certificate {
	state, encrypted := tlsconn.StateOf(ctx)
	if !encrypted || t.options.Identity.CheckCertificate == nil || len(state.VerifiedChains) == 0 {
		return nil
	}
	return state.PeerCertificates[0]
}

// ShowsCertificateFor tells whether who calls shows a certificate by which it may be a member at these peer URLs.
func (t *Transport) ShowsCertificateFor(ctx context.Context, peerURLs []string) bool {
	cert := t.certificateOf(ctx)
	return cert != nil && t.options.Identity.CheckCertificate(cert, hostsOf(peerURLs)) == nil
}

// WantsCertificates tells whether who connects must show a certificate that names a member's host.
func (t *Transport) WantsCertificates() bool { return t.options.Identity.CheckCertificate != nil }

func hostsOf(urls []string) (hosts []string) {
	for _, text := range urls {
		if u, err := url.Parse(text); err == nil && u.Hostname() != "" {
			hosts = append(hosts, u.Hostname())
		}
	}
	return hosts
}
