package transport

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/quorate/quorate/internal/identity"
)

// Ensure that a certificate which a peer does not trust is logged though the peer could not be reached before, and each of the two
// once only.
func TestPeer_report_untrusted(t *testing.T) {
	var logged bytes.Buffer
	p := &peer{t: &Transport{logger: slog.New(slog.NewTextHandler(&logged, nil)), ctx: t.Context()}}
	for range 3 {
		p.report(errors.New("dial tcp 127.0.0.1:2380: connect: connection refused"))
	}
	for range 3 {
		p.report(errors.New("error reading server preface: remote error: tls: bad certificate"))
	}
	if lines := strings.Count(logged.String(), "peer unreachable"); lines != 2 || !strings.Contains(logged.String(), "bad certificate") {
		t.Errorf("%d lines:\n%s", lines, logged.String())
	}
	if n := p.t.Refusals(identity.WrongCertificate); n != 0 {
		t.Errorf("%d refusals are counted, of which none is this member's", n)
	}
	p.report(errors.New("tls: failed to verify certificate: x509: certificate is valid for m9.example.com, not 127.0.0.1"))
	if n := p.t.Refusals(identity.WrongCertificate); n != 1 {
		t.Errorf("%d refusals of a peer's certificate are counted, want 1", n)
	}
}

// Ensure that a name which does not resolve is told apart from an address that nobody answers at, and forgotten once it does.
func TestPeer_report_unresolved(t *testing.T) {
	var logged bytes.Buffer
	o := Options{}
	o.Times.Dial = 5 * time.Second
	p := &peer{t: &Transport{logger: slog.New(slog.NewTextHandler(&logged, nil)), ctx: t.Context(), options: o},
		urls: []string{"http://no-such-member.invalid:2380"}}
	p.ordered = newPeerStream(p, streamOrdered)
	attempt := func() {
		conn, err := p.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.Connect()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for state := conn.GetState(); state != connectivity.TransientFailure; state = conn.GetState() {
			if !conn.WaitForStateChange(ctx, state) {
				t.Fatalf("the connection is %v", state)
			}
		}
		p.report(errors.New("rpc error: code = Unavailable desc = connection error"))
	}
	attempt()
	if p.faultWord() != unresolved || !strings.Contains(logged.String(), "the name of a peer does not resolve") {
		t.Errorf("of a name that does not resolve: %q\n%s", p.faultWord(), logged.String())
	}
	p.urls = []string{"http://no-such-member.invalid:2380", "http://127.0.0.1:1"}
	if attempt(); p.faultWord() != unreachable {
		t.Errorf("of two URLs, of which one is an address: %q", p.faultWord())
	}
}
