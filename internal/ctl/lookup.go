package ctl

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/server/discovery/srv"
)

// lookup are the flags that find members in DNS.
type lookup struct {
	domain, service string
	insecure        bool
	authority       string // a file
	authorityFlag   string
}

func (l *lookup) addTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.domain, "discovery-srv", "",
		"domain whose SRV records, _etcd-client-ssl._tcp and _etcd-client._tcp, name the members, instead of --endpoints")
	f.StringVar(&l.service, "discovery-srv-name", "", "look for _etcd-client-ssl-NAME._tcp and _etcd-client-NAME._tcp")
	f.BoolVar(&l.insecure, "insecure-discovery", false,
		"use endpoints without TLS, too, and do not verify the certificates of the others")
}

// verifyTimeout is how long one member may take to show its certificate.
const verifyTimeout = 5 * time.Second

// find returns the records to use; none if no domain is given. Without --insecure-discovery those are left out that have no TLS
// or show a certificate that is not theirs. A server that does not answer stays: it may be down, and the client that connects
// verifies it again.
func (l *lookup) find(ctx context.Context, resolver srv.Resolver, logger *slog.Logger) ([]srv.Record, error) {
	if l.domain == "" {
		if l.service != "" {
			return nil, command.Usagef("--discovery-srv-name needs --discovery-srv")
		}
		return nil, nil
	}
	all, err := srv.Lookup(ctx, srv.Query{Resolver: resolver, Domain: l.domain, Service: l.service}, srv.Clients)
	if err != nil {
		return nil, command.Refused(fmt.Errorf("--discovery-srv %s: %w", l.domain, err))
	}
	logger.InfoContext(ctx, "discovered cluster from SRV", "srv-server", l.domain, "endpoints", urlsOf(all))
	if l.insecure {
		return all, nil
	}
	var roots *x509.CertPool // nil: the system's
	if l.authority != "" {
		pem, err := os.ReadFile(l.authority)
		if err != nil {
			return nil, command.Usagef("--%s: %v", l.authorityFlag, err)
		}
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(pem) {
			return nil, command.Usagef("--%s %s holds no certificate in PEM form", l.authorityFlag, l.authority)
		}
	}
	var good []srv.Record
	for i := range all {
		switch err := l.verify(ctx, &all[i], roots); {
		case err != nil:
			logger.WarnContext(ctx, "an endpoint from DNS is left out", "endpoint", all[i].URL(), "err", err)
		default:
			good = append(good, all[i])
		}
	}
	if len(good) == 0 {
		return nil, command.Usagef("--discovery-srv %s: none of %v could be verified (the log says why): name the authority "+
			"of their certificates with --%s, or trust DNS with --insecure-discovery", l.domain, urlsOf(all), l.authorityFlag)
	}
	return good, nil
}

var errClear = errors.New("it has no TLS; --insecure-discovery takes it")

// verify refuses an endpoint without TLS, and one that shows a certificate that is neither for its host nor for the domain.
func (l *lookup) verify(ctx context.Context, r *srv.Record, roots *x509.CertPool) error {
	if !r.Secure {
		return errClear
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.Address())
	if err != nil {
		return nil
	}
	defer conn.Close()
	verified := false
	secured := tls.Client(conn, &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: r.Host,
		InsecureSkipVerify: true, // VerifyConnection does it, for two names
		VerifyConnection: func(state tls.ConnectionState) error {
			err := verifyFor(state.PeerCertificates, roots, r.Host, l.domain)
			verified = err == nil
			return err
		},
	})
	if err = secured.HandshakeContext(ctx); verified { // it may ask for a certificate, which this is not about
		return nil
	}
	return err
}

// verifyFor checks a chain of certificates, the first of which must be for one of the names.
func verifyFor(chain []*x509.Certificate, roots *x509.CertPool, names ...string) error {
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	var err error
	for _, name := range names {
		options.DNSName = name
		if net.ParseIP(name) != nil {
			options.DNSName = "[" + name + "]"
		}
		if _, err = chain[0].Verify(options); err == nil {
			return nil
		}
	}
	return err
}

func urlsOf(records []srv.Record) []string {
	urls := make([]string, len(records))
	for i := range records {
		urls[i] = records[i].URL()
	}
	return urls
}
