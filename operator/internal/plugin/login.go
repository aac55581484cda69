package plugin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quorate/quorate/internal/ctl/command"
)

const (
	otherUser  = "COMMAND's --user NAME takes another user, whose password it asks for"
	otherFiles = "--tls-secret names another Secret"
)

// login is who the command comes from, as settings of the environment; none: nobody is named.
func (k *Kubernetes) login(ctx context.Context, c *cluster, o *Options) ([]string, error) {
	user, from := "root", c.pods[0].password
	if c.resource != nil {
		name, _, _ := unstructured.NestedString(c.resource.Object, "spec", "auth", "rootPasswordSecret")
		if name != "" {
			from = &file{name, "password"}
		}
	}
	if o.userSecret != "" {
		from = &file{o.userSecret, "password"}
	}
	if from == nil {
		return nil, nil
	}
	s, err := k.readSecret(ctx, from.secret, otherUser)
	if err != nil {
		return nil, err
	}
	if name := s.Data["username"]; o.userSecret != "" && len(name) > 0 {
		user = string(name)
	}
	password := s.Data[from.key]
	if len(password) == 0 {
		return nil, command.Refused(fmt.Errorf("the Secret %s has no key %q with a password; %s", from.secret, from.key,
			otherUser))
	}
	return []string{"USER=" + user, "PASSWORD=" + string(password)}, nil
}

// encryption is how to encrypt a connection to a pod; nil: not at all.
func (k *Kubernetes) encryption(ctx context.Context, p *pod, o *Options) (*tls.Config, error) {
	authority, certificate, key := p.authority, p.certificate, p.key
	switch {
	case o.tlsSecret != "":
		authority, certificate, key = &file{o.tlsSecret, "ca.crt"}, &file{o.tlsSecret, "tls.crt"}, &file{o.tlsSecret, "tls.key"}
	case !p.encrypted:
		return nil, nil
	case p.selfSigned: // the API server and the kubelet know whose port it is
		return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, InsecureSkipVerify: true}, nil
	case p.foreign != "":
		return nil, command.Refused(errors.New(p.foreign + ": give the certificates with --tls-secret"))
	case authority == nil:
		return nil, command.Refused(fmt.Errorf("pod %s encrypts, and names no Secret with its authority: give one with "+
			"--tls-secret", p.name))
	}
	s, err := k.readSecret(ctx, authority.secret, otherFiles)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.Data[authority.key]) {
		return nil, command.Refused(fmt.Errorf("the Secret %s has no certificate under the key %q; %s", authority.secret,
			authority.key, otherFiles))
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
		InsecureSkipVerify: true, // VerifyConnection does it, for all names of the pod
		VerifyConnection:   func(state tls.ConnectionState) error { return verify(state.PeerCertificates, roots, p) }}
	if certificate == nil || key == nil {
		return config, nil
	}
	if certificate.secret != authority.secret {
		if s, err = k.readSecret(ctx, certificate.secret, otherFiles); err != nil {
			return nil, err
		}
	}
	if len(s.Data[certificate.key]) == 0 && o.tlsSecret != "" {
		return config, nil // an authority alone: the member may ask for no certificate
	}
	pair, err := tls.X509KeyPair(s.Data[certificate.key], s.Data[key.key])
	if err != nil {
		return nil, command.Refused(fmt.Errorf("the certificate in the Secret %s: %w", certificate.secret, err))
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// verify wants a chain to a root, and that the certificate is for one of the names of the pod.
func verify(chain []*x509.Certificate, roots *x509.CertPool, p *pod) error {
	if len(chain) == 0 {
		return errors.New("the pod shows no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates}); err != nil {
		return fmt.Errorf("the pod's certificate is not signed by the authority of its Secret: %w", err)
	}
	for _, name := range p.names {
		for _, form := range []string{name, name + "." + p.domain} {
			if chain[0].VerifyHostname(form) == nil {
				return nil
			}
		}
	}
	return fmt.Errorf("the pod's certificate is for %s, and for none of %s", strings.Join(chain[0].DNSNames, ", "),
		strings.Join(p.names, ", "))
}
