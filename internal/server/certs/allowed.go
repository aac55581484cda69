package certs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
)

// verifyName checks that a certificate is for one of those who are admitted, by its common name or by the hosts that it is
// valid for. Where nobody is named, everybody is admitted whom the authorities have signed for.
func verifyName(state tls.ConnectionState, commonNames, hosts []string) error {
	if len(commonNames) == 0 && len(hosts) == 0 {
		return nil
	}
	if len(state.PeerCertificates) == 0 {
		return errors.New("certs: no certificate was shown")
	}
	cert := state.PeerCertificates[0]
	if slices.Contains(commonNames, cert.Subject.CommonName) ||
		slices.ContainsFunc(hosts, func(host string) bool { return cert.VerifyHostname(host) == nil }) {
		return nil
	}
	return fmt.Errorf("certs: the certificate of %q, for %v %v, is none of those that are admitted: %v %v",
		cert.Subject.CommonName, cert.IPAddresses, cert.DNSNames, commonNames, hosts)
}
