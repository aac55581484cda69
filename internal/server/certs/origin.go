package certs

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
)

// verifyOrigin checks that a certificate, if it names addresses at all, names the one it was shown from: a stolen key
// of one member is of no use elsewhere. Names are resolved both ways, because either may be all that a network has.
func verifyOrigin(ctx context.Context, state tls.ConnectionState, from net.Addr) error {
	tcp, ok := from.(*net.TCPAddr)
	if !ok || len(state.PeerCertificates) == 0 {
		return nil
	}
	cert, host := state.PeerCertificates[0], tcp.IP.String()
	if len(cert.IPAddresses) == 0 && len(cert.DNSNames) == 0 {
		return nil
	}
	if slices.ContainsFunc(cert.IPAddresses, tcp.IP.Equal) || resolvesTo(ctx, cert.DNSNames, host) {
		return nil
	}
	return fmt.Errorf("certs: a peer connects from %s, which its certificate does not name: %v %v", host,
		cert.IPAddresses, cert.DNSNames)
}

func resolvesTo(ctx context.Context, names []string, host string) bool {
	if len(names) == 0 {
		return false
	}
	found, _ := net.DefaultResolver.LookupAddr(ctx, host) // no answer is no match
	for _, name := range found {
		name = strings.TrimSuffix(name, ".")
		matches := func(pattern string) bool {
			suffix, wild := strings.CutPrefix(pattern, "*")
			return strings.EqualFold(pattern, name) ||
				wild && strings.HasSuffix(strings.ToLower(name), strings.ToLower(suffix))
		}
		if slices.ContainsFunc(names, matches) {
			return true
		}
	}
	for _, name := range names {
		if strings.HasPrefix(name, "*") {
			continue
		}
		addresses, _ := net.DefaultResolver.LookupHost(ctx, name)
		if slices.Contains(addresses, host) {
			return true
		}
	}
	return false
}
