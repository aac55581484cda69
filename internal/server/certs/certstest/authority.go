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
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, SubjectKeyId: []byte(name)}
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
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
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
	return a.IssueAs(dir, name, &x509.Certificate{IPAddresses: []net.IP{address}})
}

// IssueAs writes a certificate with the subject alternative names of template, and, if it has one, its time.
func (a *Authority) IssueAs(dir, name string, template *x509.Certificate) (certFile, keyFile string) {
	a.t.Helper()
	template.Subject, template.KeyUsage = pkix.Name{CommonName: name}, x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	cert, key := a.sign(template, a.cert, a.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	Write(a.t, certFile, "CERTIFICATE", cert.Raw)
	Write(a.t, keyFile, "PRIVATE KEY", der)
	return certFile, keyFile
}

// Revoke returns, as DER, a list that has the certificates in some files.
func (a *Authority) Revoke(certFiles ...string) []byte {
	a.t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour)}
	for _, file := range certFiles {
		raw, err := os.ReadFile(file)
		if err != nil {
			a.t.Fatal(err)
		}
		block, _ := pem.Decode(raw)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			a.t.Fatal(err)
		}
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: cert.SerialNumber, RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.cert, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return der
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
