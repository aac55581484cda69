package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/internal/base/reload"
	"github.com/quorate/quorate/internal/base/tlsfiles"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/storage/files"
)

// maker makes certificates that sign themselves.
type maker struct {
	dir    string
	urls   []config.URL // whose hosts the certificate names
	years  int
	logger *slog.Logger
}

// files returns the files of a certificate and its key: those of the last start, unless they have expired.
func (m maker) files(now time.Time) (cert, key string, err error) {
	cert, key = filepath.Join(m.dir, "cert.pem"), filepath.Join(m.dir, "key.pem")
	if err := m.refuseOthers(cert, key); err != nil {
		return "", "", fmt.Errorf("make a certificate: %w", err)
	}
	pair, err := tlsfiles.Pair(reload.File{Flag: "certificate", Path: cert}, reload.File{Flag: "key", Path: key})
	if err == nil && now.Before(pair.Leaf.NotAfter) {
		return cert, key, nil
	}
	if err := m.create(now, cert, key); err != nil {
		return "", "", fmt.Errorf("make a certificate: %w", err)
	}
	return cert, key, nil
}

// refuseOthers refuses a link, a pipe and the like in the place of the files, and of the directories that they are in. These
// are in the data directory, which may be a copy that anybody made: a key that this member makes must not be written elsewhere.
func (m maker) refuseOthers(cert, key string) error {
	return errors.Join(files.CheckDirectory(files.Disk, filepath.Dir(m.dir)), files.CheckDirectory(files.Disk, m.dir),
		files.CheckRegular(cert), files.CheckRegular(key))
}

func (m maker) create(now time.Time, certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return err
	}
	template := x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{Organization: []string{"quorate"}},
		NotBefore:    now.Add(-time.Minute), // clocks differ
		NotAfter:     now.AddDate(m.years, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},

		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	for _, u := range m.urls {
		host, _, err := net.SplitHostPort(u.Address)
		switch ip := net.ParseIP(host); {
		case err != nil: // a socket
		case ip != nil:
			template.IPAddresses = append(template.IPAddresses, ip)
		default:
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	certDER, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	if err := writePEM(keyFile, "PRIVATE KEY", keyDER); err != nil {
		return err
	}
	if err := writePEM(certFile, "CERTIFICATE", certDER); err != nil {
		return err
	}
	m.logger.Warn("made a certificate that nobody can verify; it encrypts, but does not tell who is who",
		"cert-file", certFile, "expires", template.NotAfter.Format(time.RFC3339))
	return nil
}

// writePEM needs no sync: a file that a power loss damages is made anew.
func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
