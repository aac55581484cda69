package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// Ensure that a line about a member whose name is known has it beside the id, and others are as they were.
func TestNaming_Handle(t *testing.T) {
	var out bytes.Buffer
	n := &names{}
	log := slog.New(naming{slog.NewTextHandler(&out, nil), n}).With("local", "1")
	log.Warn("peer lost", "peer", "a2")
	n.known.Store(&map[string]string{"a2": "m2"})
	log.Warn("peer lost", "peer", "a2")
	log.Warn("peer lost", "peer", "a3")
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{"local=1 peer=a2", "local=1 peer=a2 peer-name=m2", "local=1 peer=a3"} {
		if !strings.HasSuffix(lines[i], want) {
			t.Errorf("line %d is %q, want %q at its end", i, lines[i], want)
		}
	}
}
