package plane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Files are paths of a certificate and its key.
type Files struct{ Cert, Key string }

// An Authority signs certificates, and writes them into a directory.
type Authority struct {
	PEM         []byte // its certificate
	directory   string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	files       Files
}

// NewAuthority makes one.
func NewAuthority(directory, name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &Authority{directory: directory, key: key}
	template := a.template(pkix.Name{CommonName: name})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	a.certificate = template
	a.files, err = a.write(name, template, key)
	if err != nil {
		return nil, err
	}
	block, err := os.ReadFile(a.files.Cert)
	if err != nil {
		return nil, err
	}
	a.PEM = block
	decoded, _ := pem.Decode(block)
	a.certificate, err = x509.ParseCertificate(decoded.Bytes)
	return a, err
}

func (a *Authority) template(subject pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(48 * time.Hour)}
}

// Issue makes a certificate that serves and connects. Hosts are names and addresses.
func (a *Authority) Issue(file string, subject pkix.Name, hosts ...string) (Files, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Files{}, err
	}
	template := a.template(subject)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.write(file, template, key)
}

func (a *Authority) write(file string, template *x509.Certificate, key *ecdsa.PrivateKey) (Files, error) {
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return Files{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Files{}, err
	}
	files := Files{Cert: filepath.Join(a.directory, file+".crt"), Key: filepath.Join(a.directory, file+".key")}
	return files, errors.Join(
		os.WriteFile(files.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o644),
		os.WriteFile(files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}
