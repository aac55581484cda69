package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
)

var errNamesNoHost = errors.New("its certificate names no host, as those of clients do")

// PeerCheck returns how certificates of peers are judged by the hosts that they are valid for; nil if peers are not asked for
// certificates. One that names no host proves something only where --peer-cert-allowed-cn or -hostname has admitted it.
func (k *Keeper) PeerCheck() func(cert *x509.Certificate, hosts []string) error {
	if !k.files.Authenticates() {
		return nil
	}
	return func(cert *x509.Certificate, hosts []string) error {
		switch {
		case k.files.SkipClientSANVerification:
			return nil
		case len(cert.DNSNames) == 0 && len(cert.IPAddresses) == 0:
			if len(k.files.AllowedCNs) > 0 || len(k.files.AllowedHostnames) > 0 {
				return nil
			}
			return errNamesNoHost
		case slices.ContainsFunc(hosts, func(host string) bool { return cert.VerifyHostname(host) == nil }):
			return nil
		}
		return fmt.Errorf("its certificate is for %v %v, not for %v", cert.DNSNames, cert.IPAddresses, hosts)
	}
}
