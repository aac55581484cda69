package transport

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

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
