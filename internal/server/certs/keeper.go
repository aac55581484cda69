package certs

import (
	"crypto/tls"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/reload"
	"github.com/quorate/quorate/internal/base/tlsfiles"
	"github.com/quorate/quorate/internal/config"
)

// Kind tells the connections of clients from those of peers.
type Kind string

// The kinds, as logs name them.
const (
	Client Kind = "client"
	Peer   Kind = "peer"
)

// Keeper holds the certificates of one kind of connections.
type Keeper struct {
	kind   Kind
	files  config.TLS
	base   tls.Config // versions and suites
	logger *slog.Logger
	made   bool // by auto-tls

	pair  *reload.Source[*tls.Certificate]      // shown to a client or peer that connects; nil: there is none
	shown *reload.Source[*tls.Certificate]      // shown to a server or peer to which we connect; nil: there is none
	roots *reload.Source[*tlsfiles.Authorities] // nil: the system's
	lists *reload.Source[*revocations]          // nil: nothing is revoked

	refused atomic.Uint64 // connections whose certificate was not accepted
}

// Open reads, or for auto-tls makes, the certificates of one kind. A failure is one line that names flag, file and
// cause.
func Open(kind Kind, c *config.Config, logger *slog.Logger) (*Keeper, error) {
	k := &Keeper{kind: kind, files: c.TLS.Client, logger: logger}
	prefix := "--"
	if kind == Peer {
		k.files, prefix = c.TLS.Peer, "--peer-"
	}
	suites, err := c.CipherIDs()
	if err != nil {
		return nil, err
	}
	k.base = tls.Config{
		MinVersion:   max(uint16(c.TLS.MinVersion), tls.VersionTLS12),
		MaxVersion:   uint16(c.TLS.MaxVersion),
		CipherSuites: suites,
	}
	f := &k.files
	if f.SelfSigned() {
		k.made = true
		m := maker{dir: filepath.Join(c.Storage.DataDir, "certs", string(kind)), urls: c.Listen.PeerURLs,
			years: c.TLS.SelfSignedValidity, logger: logger}
		if kind == Client {
			m.urls = c.Listen.ClientURLs
		}
		if f.CertFile, f.KeyFile, err = m.files(time.Now()); err != nil {
			return nil, err
		}
	}
	if err := k.read(prefix); err != nil {
		return nil, err
	}
	return k, nil
}

func (k *Keeper) read(prefix string) error {
	f := &k.files
	openPair := func(name, cert, key string) (*reload.Source[*tls.Certificate], error) {
		if cert == "" {
			return nil, nil
		}
		read := func() (*tls.Certificate, error) {
			return tlsfiles.Pair(reload.File{Flag: prefix + name + "cert-file", Path: cert},
				reload.File{Flag: prefix + name + "key-file", Path: key})
		}
		return reload.Open(k.watch(cert, key), read)
	}
	var err error
	if k.pair, err = openPair("", f.CertFile, f.KeyFile); err != nil {
		return err
	}
	k.shown = k.pair
	if f.ClientCertFile != "" {
		if k.shown, err = openPair("client-", f.ClientCertFile, f.ClientKeyFile); err != nil {
			return err
		}
	}
	if f.TrustedCAFile != "" {
		read := func() (*tlsfiles.Authorities, error) {
			return tlsfiles.ReadAuthorities(reload.File{Flag: prefix + "trusted-ca-file", Path: f.TrustedCAFile})
		}
		if k.roots, err = reload.Open(k.watch(f.TrustedCAFile), read); err != nil {
			return err
		}
	}
	if f.CRLFile != "" {
		flag := prefix + "crl-file"
		if k.kind == Client {
			flag = prefix + "client-crl-file"
		}
		read := func() (*revocations, error) { return readRevocations(reload.File{Flag: flag, Path: f.CRLFile}) }
		if k.lists, err = reload.Open(k.watch(f.CRLFile), read); err != nil {
			return err
		}
	}
	k.announce()
	return nil
}

func (k *Keeper) verifyUnrevoked(state tls.ConnectionState) error {
	if k.lists == nil {
		return nil
	}
	return k.lists.Get().verify(state.PeerCertificates, state.VerifiedChains)
}

func (k *Keeper) watch(paths ...string) reload.Options {
	return reload.Options{What: "TLS files", Paths: paths, Clock: env.WallClock{}, Logger: k.logger}
}

// announce tells what is served, and of a certificate that no client will accept.
func (k *Keeper) announce() {
	if k.pair == nil {
		return
	}
	leaf := k.pair.Get().Leaf
	k.logger.Info("encrypting with TLS", "kind", string(k.kind), "cert-file", k.files.CertFile, "trusted-ca-file",
		k.files.TrustedCAFile, "client-cert-auth", k.files.Authenticates(), "expires", leaf.NotAfter.Format(time.RFC3339))
	if now := time.Now(); now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		k.logger.Warn("the certificate is not valid today", "cert-file", k.files.CertFile,
			"from", leaf.NotBefore.Format(time.RFC3339), "to", leaf.NotAfter.Format(time.RFC3339))
	}
}

// Refused returns how many connections to this member were refused for the certificate that they showed: it is signed by
// another authority, not valid now, revoked, or does not name a client or peer that is admitted from there.
func (k *Keeper) Refused() uint64 { return k.refused.Load() }

// server makes the configuration for connections that are accepted; every handshake asks for the files of its moment.
func (k *Keeper) server(protocols []string) *tls.Config {
	c := k.base.Clone()
	c.NextProtos = protocols
	c.SessionTicketsDisabled = true
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		c := k.base.Clone()
		c.NextProtos = protocols
		c.SessionTicketsDisabled = true
		c.Certificates = []tls.Certificate{*k.pair.Get()}
		if k.files.Authenticates() {
			c.ClientAuth = tls.RequireAndVerifyClientCert
		}
		if k.roots != nil {
			c.ClientCAs = k.roots.Get().Pool
		}
		c.VerifyConnection = func(state tls.ConnectionState) (err error) {
			defer func() {
				if err != nil {
					k.refused.Add(1)
				}
			}()
			if err := k.verifyUnrevoked(state); err != nil {
				return err
			}
			if err := verifyName(state, k.files.AllowedCNs, k.files.AllowedHostnames); err != nil {
				return err
			}
			if k.kind == Peer && !k.files.SkipClientSANVerification {
				return verifyOrigin(hello.Context(), state, hello.Conn.RemoteAddr())
			}
			return nil
		}
		return c, nil
	}
	return c
}

// Dial makes the configuration for one connection to a process of this kind; the name to expect is the caller's to set.
func (k *Keeper) Dial() *tls.Config {
	c := k.base.Clone()
	// A certificate that signs itself proves nothing: auto-tls only keeps listeners out.
	c.InsecureSkipVerify = k.made
	if k.roots != nil {
		c.RootCAs = k.roots.Get().Pool
	}
	c.VerifyConnection = k.verifyUnrevoked
	if k.shown != nil {
		// Shown whatever authorities the other side names, as it may just have changed them.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return k.shown.Get(), nil }
	}
	return c
}
