package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/reload"
)

// Dialing makes the configuration of a client from files; those without a path are left out. Nothing is read again.
func Dialing(authority, cert, key reload.File) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority.Path != "" {
		roots, err := readPool(authority)
		if err != nil {
			return nil, err
		}
		c.RootCAs = roots.pool
	}
	if cert.Path != "" {
		pair, err := readPair(cert, key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{*pair}
	}
	return c, nil
}

// readPair reads a certificate with its key.
func readPair(cert, key reload.File) (*tls.Certificate, error) {
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

// authorities are those of one file.
type authorities struct {
	pool  *x509.CertPool
	first *x509.Certificate // to expire
}

// readPool reads authorities.
func readPool(file reload.File) (*authorities, error) {
	raw, err := file.Bytes()
	if err != nil {
		return nil, err
	}
	all, err := parseAll(file, raw)
	if err != nil {
		return nil, err
	}
	a := &authorities{pool: x509.NewCertPool(), first: all[0]}
	for _, cert := range all {
		a.pool.AddCert(cert)
		if cert.NotAfter.Before(a.first.NotAfter) {
			a.first = cert
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
