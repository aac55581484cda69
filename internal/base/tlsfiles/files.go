package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/base/reload"
)

// Dialing makes the configuration of a client from files; those without a path are left out. Nothing is read again.
func Dialing(authority, cert, key reload.File) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority.Path != "" {
		roots, err := ReadAuthorities(authority)
		if err != nil {
			return nil, err
		}
		c.RootCAs = roots.Pool
	}
	if cert.Path != "" {
		pair, err := Pair(cert, key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{*pair}
	}
	return c, nil
}

// Pair reads a certificate with its key.
func Pair(cert, key reload.File) (*tls.Certificate, error) {
	certPEM, err := cert.Bytes()
	if err != nil {
		return nil, err
	}
	keyPEM, err := key.Bytes()
	if err != nil {
		return nil, err
	}
	if _, err := parseAll(cert, certPEM); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%v with %v: %w", key, cert, err)
	}
	return &pair, nil
}

// Authorities are those of one file.
type Authorities struct {
	Pool  *x509.CertPool
	First *x509.Certificate // to expire
}

// ReadAuthorities reads a file of certificates that may sign others.
func ReadAuthorities(file reload.File) (*Authorities, error) {
	raw, err := file.Bytes()
	if err != nil {
		return nil, err
	}
	all, err := parseAll(file, raw)
	if err != nil {
		return nil, err
	}
	a := &Authorities{Pool: x509.NewCertPool(), First: all[0]}
	for _, cert := range all {
		a.Pool.AddCert(cert)
		if cert.NotAfter.Before(a.First.NotAfter) {
			a.First = cert
		}
	}
	return a, nil
}

var errNoCertificate = errors.New("holds no certificate in PEM form")

// parseAll reads the certificates of a file; anything damaged is an error rather than left out.
func parseAll(file reload.File, raw []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for {
		var block *pem.Block
		block, raw = pem.Decode(raw)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", file, err)
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%v: %w", file, errNoCertificate)
	}
	return all, nil
}
