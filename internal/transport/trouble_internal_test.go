package transport

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
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
}
