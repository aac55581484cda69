// Package certs makes the authority of a cluster and the certificates of its members, and says when to renew them.
package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// Pair is a certificate and its key, in PEM form.
type Pair struct{ Cert, Key []byte }

// authorityLife is how long an authority is good. It is renewed half way, and the former one stays trusted until it ends.
const authorityLife = 10 * 365 * 24 * time.Hour

// NewAuthority makes an authority.
func NewAuthority(name string, now time.Time) (Pair, error) {
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(authorityLife),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		MaxPathLenZero: true}
	return sign(template, nil, nil)
}

// AuthorityOld tells whether another authority should sign from now on.
func AuthorityOld(authority Pair, now time.Time) bool {
	cert, err := parse(authority.Cert)
	return err != nil || now.After(cert.NotBefore.Add(authorityLife/2))
}

// AuthorityAge is for how long an authority has been there.
func AuthorityAge(authority Pair, now time.Time) time.Duration {
	cert, err := parse(authority.Cert)
	if err != nil {
		return 0
	}
	return now.Sub(cert.NotBefore.Add(time.Hour)) // NewAuthority lets it begin an hour before it is made
}

// Signs tells whether an authority has its key, and is not at its end.
func Signs(authority Pair, now time.Time) bool {
	_, err := tls.X509KeyPair(authority.Cert, authority.Key)
	cert, _ := parse(authority.Cert)
	return err == nil && cert != nil && now.Before(cert.NotAfter)
}

// Issue makes a certificate of a member, for both usages: members are clients of each other.
func Issue(authority Pair, name string, hosts []string, life time.Duration, now time.Time) (Pair, error) {
	by, err := tls.X509KeyPair(authority.Cert, authority.Key)
	if err != nil {
		return Pair{}, fmt.Errorf("the authority's certificate and key: %w", err)
	}
	key, ok := by.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return Pair{}, errors.New("the authority's key is not of ECDSA")
	}
	parent, err := x509.ParseCertificate(by.Certificate[0])
	if err != nil {
		return Pair{}, fmt.Errorf("the authority's certificate: %w", err)
	}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: hosts, NotBefore: now.Add(-time.Minute),
		NotAfter: now.Add(life), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	return sign(template, parent, key)
}

// Due says why a certificate must be made anew; empty: it need not be.
func Due(pair Pair, authorities []byte, hosts []string, now time.Time) string {
	cert, err := parse(pair.Cert)
	if err != nil {
		return err.Error()
	}
	if _, err := tls.X509KeyPair(pair.Cert, pair.Key); err != nil {
		return err.Error()
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities)
	_, err = cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: cert.NotBefore.Add(time.Second),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	switch {
	case err != nil:
		return err.Error()
	case !slices.Equal(cert.DNSNames, hosts):
		return fmt.Sprintf("it is for %v", cert.DNSNames)
	case now.After(cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore) / 3)):
		return "two thirds of its life have passed"
	}
	return ""
}

// Trusted returns the authorities of a bundle that are not at their end, each once, the given one first.
func Trusted(authority, bundle []byte, now time.Time) []byte {
	out := bytes.Clone(authority)
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return out
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if text := pem.EncodeToMemory(block); err == nil && now.Before(cert.NotAfter) && !bytes.Contains(out, text) {
			out = append(out, text...)
		}
	}
}

func parse(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("there is no certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}

func sign(template, parent *x509.Certificate, by *ecdsa.PrivateKey) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return Pair{}, err
	}
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		return Pair{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})}, nil
}
