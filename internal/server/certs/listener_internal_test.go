package certs

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/logpace"
)

// Ensure that a flood of bad handshakes is few lines.
func TestListener_report_flood(t *testing.T) {
	var written strings.Builder
	l := &Listener{kind: Client, logger: slog.New(slog.NewTextHandler(&written, nil)), failed: &logpace.Pace{Burst: maxReasons}}
	begun := time.Now()
	for range 4000 {
		l.report(&net.TCPAddr{}, errors.New("tls: first record does not look like a TLS handshake"))
	}
	l.report(&net.TCPAddr{}, io.EOF)
	lines, most := strings.Count(written.String(), "\n"), int(time.Since(begun)/time.Second)+maxReasons
	if lines < 1 || lines > most || !strings.Contains(written.String(), "rejected connection on client endpoint") {
		t.Errorf("%d lines, want %d at most:\n%.500s", lines, most, written.String())
	}
}
