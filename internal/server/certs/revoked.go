package certs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/base/reload"
)

var errNoRevocationList = errors.New("holds no revocation list, neither in PEM form nor in DER")

// revocations are the lists of one file (RFC 5280, section 5), by issuer and serial number.
type revocations struct {
	revoked map[string]bool
	// Expires is when the first of the lists should have been replaced; zero: none says so.
	expires time.Time
}

// readRevocations reads one list in DER form, or any number in PEM form.
func readRevocations(file reload.File) (*revocations, error) {
	raw, err := file.Bytes()
	if err != nil {
		return nil, err
	}
	r := &revocations{revoked: map[string]bool{}}
	if !bytes.Contains(raw, []byte("-----BEGIN")) {
		return r, r.add(file, raw)
	}
	for {
		var block *pem.Block
		if block, raw = pem.Decode(raw); block == nil {
			break
		}
		if block.Type != "X509 CRL" {
			continue
		}
		if err := r.add(file, block.Bytes); err != nil {
			return nil, err
		}
	}
	if r.expires.IsZero() && len(r.revoked) == 0 {
		return nil, fmt.Errorf("%v: %w", file, errNoRevocationList)
	}
	return r, nil
}

func (r *revocations) add(file reload.File, der []byte) error {
	list, err := x509.ParseRevocationList(der)
	if err != nil {
		return fmt.Errorf("%v: %w", file, err)
	}
	for i := range list.RevokedCertificateEntries {
		r.revoked[revocationKey(list.RawIssuer, list.RevokedCertificateEntries[i].SerialNumber.Bytes())] = true
	}
	if !list.NextUpdate.IsZero() && (r.expires.IsZero() || list.NextUpdate.Before(r.expires)) {
		r.expires = list.NextUpdate
	}
	return nil
}

// revocationKey is the serial number after the issuer, whose DER tells its own length.
func revocationKey(issuer, serial []byte) string { return string(issuer) + string(serial) }

// verify refuses a certificate that is revoked, or one of whose authorities is. The operator who puts a list into the file is
// trusted: the list's signature is not looked at, and a list that should have been replaced still counts.
func (r *revocations) verify(shown []*x509.Certificate, chains [][]*x509.Certificate) error {
	for _, chain := range append(chains[:len(chains):len(chains)], shown[:min(1, len(shown))]) {
		for _, cert := range chain {
			if r.revoked[revocationKey(cert.RawIssuer, cert.SerialNumber.Bytes())] {
				return fmt.Errorf("certs: the certificate of %q with serial number %v is revoked", cert.Subject.CommonName,
					cert.SerialNumber)
			}
		}
	}
	return nil
}
