package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
)

// source is what some files hold together, read again when one of them has changed.
type source[T any] struct {
	paths  []string
	read   func() (T, error)
	logger *slog.Logger

	mu    sync.Mutex
	seen  []fs.FileInfo // of paths when they were last read, whether that went well or not; nil: cannot be found
	value T             // the last that could be read
}

// open reads the files for the first time, which must go well.
func open[T any](logger *slog.Logger, read func() (T, error), paths ...string) (*source[T], error) {
	s := &source[T]{paths: paths, read: read, logger: logger}
	s.seen = s.look() // before reading: a change in between is found at the next look
	var err error
	s.value, err = read()
	return s, err
}

// get returns what the files hold now. It looks at them each time, which costs microseconds in a handshake that costs
// a thousand.
func (s *source[T]) get() T {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.look()
	if sameFiles(s.seen, now) {
		return s.value
	}
	s.seen = now
	value, err := s.read()
	if err != nil {
		s.logger.Warn("changed TLS files cannot be used; those read before stay in force", "err", err)
		return s.value
	}
	s.logger.Info("read changed TLS files", "files", s.paths)
	s.value = value
	return value
}

func (s *source[T]) look() []fs.FileInfo {
	var infos []fs.FileInfo
	for _, path := range s.paths {
		info, err := os.Stat(path)
		if err != nil {
			info = nil
		}
		infos = append(infos, info)
	}
	return infos
}

// sameFiles compares identity too: Kubernetes replaces secrets by turning a symbolic link.
func sameFiles(a, b []fs.FileInfo) bool {
	for i := range a {
		switch {
		case a[i] == nil || b[i] == nil:
			if a[i] != b[i] {
				return false
			}
		case !os.SameFile(a[i], b[i]) || !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Size() != b[i].Size():
			return false
		}
	}
	return true
}

// named is a file with the flag that named it.
type named struct{ flag, path string }

func (n named) String() string { return n.flag + " " + n.path }

func (n named) bytes() ([]byte, error) {
	raw, err := os.ReadFile(n.path)
	if err != nil {
		// Without its type: who reads it would advise about the data directory's permissions.
		return nil, fmt.Errorf("%v: %v", n, cause(err))
	}
	return raw, nil
}

func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// readPair reads a certificate with its key.
func readPair(cert, key named) (*tls.Certificate, error) {
	certPEM, err := cert.bytes()
	if err != nil {
		return nil, err
	}
	keyPEM, err := key.bytes()
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

// readPool reads authorities.
func readPool(file named) (*x509.CertPool, error) {
	raw, err := file.bytes()
	if err != nil {
		return nil, err
	}
	all, err := parseAll(file, raw)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, cert := range all {
		pool.AddCert(cert)
	}
	return pool, nil
}

var errNoCertificate = errors.New("holds no certificate in PEM form")

// parseAll reads the certificates of a file; anything damaged is an error rather than left out.
func parseAll(file named, raw []byte) ([]*x509.Certificate, error) {
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
