package certstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes an authority.
func New(t *testing.T, name string) *Authority {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	a := &Authority{t: t}
	a.cert, a.key = a.sign(template, template, nil)
	return a
}

// sign signs template by parent; without a parent's key, by its own.
func (a *Authority) sign(template, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate,
	*ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if by == nil {
		by = key
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		a.t.Fatal(err)
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// Issue writes a certificate for an address and its key into dir.
func (a *Authority) Issue(dir, name string, address net.IP) (certFile, keyFile string) {
	a.t.Helper()
	cert, key := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{address}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, a.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	Write(a.t, certFile, "CERTIFICATE", cert.Raw)
	Write(a.t, keyFile, "PRIVATE KEY", der)
	return certFile, keyFile
}

// Publish writes the authority's own certificate.
func (a *Authority) Publish(file string) string {
	a.t.Helper()
	Write(a.t, file, "CERTIFICATE", a.cert.Raw)
	return file
}

// Write writes one block in PEM form.
func Write(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	Replace(t, file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// Replace replaces a file as a whole, as tools that rotate certificates do.
func Replace(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// Loopback is where tests listen.
var Loopback = net.IPv4(127, 0, 0, 1)
