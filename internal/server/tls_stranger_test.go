package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/server/certs/certstest"
	"github.com/quorate/quorate/internal/transport"
)

// showing is how a process dials members that shows the certificate of some files.
func (s *secured) showing(certFile, keyFile string) transport.Options {
	s.t.Helper()
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		s.t.Fatal(err)
	}
	config := s.trusting()
	config.Certificates = []tls.Certificate{pair}
	return transport.Options{
		Logger: slog.New(slog.DiscardHandler), TLS: transport.TLS{Dial: func() *tls.Config { return config.Clone() }},
		Self: identity.Claim{Cluster: s.servers[0].Member().Cluster()},
	}
}

// Ensure that a certificate of the peers' authority for a client, or for another host, neither speaks for a member nor makes a
// process one, and that a peer's certificate does.
func TestServer_tls_strangers(t *testing.T) {
	s := startSecured(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	config := s.servers[0].Member().Status().Config
	self, _ := config.Member(s.servers[0].Member().ID())
	url := self.PeerURLs[0]

	visitor := s.showing(s.authority.IssueAs(s.dir, "visitor", &x509.Certificate{}))
	elsewhere := s.showing(s.authority.IssueAs(s.dir, "elsewhere", &x509.Certificate{DNSNames: []string{"m9.example.com"}}))
	peer := s.showing(s.authority.Issue(s.dir, "peer", certstest.Loopback))
	claim := identity.Claim{Cluster: visitor.Self.Cluster, Member: 77, Storage: consensus.StorageID{7},
		Life: consensus.Life{Boots: 1, Nonce: 1}, Address: "https://127.0.0.1:9",
		Epoch: consensus.Epoch{Number: 9, Recovery: [16]byte{9}}}
	for name, row := range map[string]struct {
		options transport.Options
		reason  string
	}{"visitor": {visitor, "wrong-certificate"}, "peer": {peer, "other-epoch"}} {
		row.options.Self = claim
		claiming, err := transport.New(row.options)
		if err != nil {
			t.Fatal(err)
		}
		_, err = claiming.CallURL(ctx, url, member.MethodGreet, nil, member.MostGreeting) // what it says of an epoch is not believed, either
		if refused := err != nil && strings.Contains(err.Error(), row.reason); refused != (name == "visitor") {
			t.Errorf("a greeting of a %s in the name of a member: %v", name, err)
		}
		if _, err := claiming.CallURL(ctx, url, "anything", nil, member.MostGreeting); err == nil || !strings.Contains(err.Error(), row.reason) {
			t.Errorf("a call of a %s in the name of a member: %v, want %s", name, err, row.reason)
		}
		_ = claiming.Close()
	}
	if alarms := s.servers[0].Member().Alarms(); len(alarms) > 0 {
		t.Errorf("a greeting of an epoch that nobody has raises an alarm: %q", alarms)
	}

	join := func(options transport.Options, at string) error {
		_, err := member.Join(ctx, options, url, autopilot.JoinRequest{Name: "new", PeerURLs: []string{at}, Learner: true})
		return err
	}
	// Users are off: a certificate of the same authority that names no host of the peer URLs admits no process, and evicts no
	// member.
	var closed *membership.SpecError
	if err := join(visitor, "https://127.0.0.1:9"); !errors.As(err, &closed) || !strings.Contains(err.Error(), "--join-token") {
		t.Errorf("a visitor joins while users are off: %v", err)
	}
	_, err := member.Join(ctx, visitor, url, autopilot.JoinRequest{Name: "new", PeerURLs: []string{url}, Replaces: self.ID.String()})
	if !errors.As(err, &closed) {
		t.Errorf("a visitor takes the place of a voter: %v", err)
	}

	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + s.address(0)}, TLS: s.certified()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, do := range []func() error{
		func() error { _, err := client.UserAdd(ctx, "root", "pw"); return err },
		func() error { _, err := client.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := client.AuthEnable(ctx); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	for name, err := range map[string]error{
		"a visitor":               join(visitor, "https://127.0.0.1:9"),
		"a host of another place": join(peer, "https://10.9.9.9:9"),
	} {
		var refused *membership.SpecError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "authentication is enabled") {
			t.Errorf("%s joins: %v", name, err)
		}
	}
	if err := join(elsewhere, "https://m9.example.com:9"); err == nil {
		t.Error("a certificate was accepted from an address that it does not name")
	}
	if err := join(peer, "https://127.0.0.1:9"); err != nil {
		t.Errorf("a peer joins: %v", err)
	}
}
