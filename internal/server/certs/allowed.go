package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// verifyName checks that a certificate is for one of those who are admitted, by its common name, by the hosts that it is
// valid for, or by a URI that it names, as those of SPIFFE (spiffe://trust-domain/path) do. Where no name is given, every
// process is admitted for which the authorities have signed.
func verifyName(state tls.ConnectionState, commonNames, hosts []string) error {
	if len(commonNames) == 0 && len(hosts) == 0 {
		return nil
	}
	if len(state.PeerCertificates) == 0 {
		return errors.New("client certificate authentication failed: no certificate was shown")
	}
	cert := state.PeerCertificates[0]
	if slices.Contains(commonNames, cert.Subject.CommonName) ||
		slices.ContainsFunc(hosts, func(host string) bool { return isFor(cert, host) }) {
		return nil
	}
	// The first words are etcd's.
	return fmt.Errorf("client certificate authentication failed: the certificate of %q, for %v %v %v, is none of those that "+
		"are admitted: %v %v",
		cert.Subject.CommonName, cert.IPAddresses, cert.DNSNames, cert.URIs, commonNames, hosts)
}

// isFor compares URIs as texts, whole: a name that was admitted by a part of it could be any host's.
func isFor(cert *x509.Certificate, host string) bool {
	if strings.Contains(host, "://") {
		return slices.ContainsFunc(cert.URIs, func(u *url.URL) bool { return u.String() == host })
	}
	return cert.VerifyHostname(host) == nil
}
