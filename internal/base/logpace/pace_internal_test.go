package logpace

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// Ensure that a client that makes a library write many lines does not fill the log, and that the log says how many there were.
func TestWriter_flood(t *testing.T) {
	var written strings.Builder
	now := time.Unix(1000, 0)
	l := newWriter(slog.New(slog.NewTextHandler(&written, nil)), "grpc: ")
	l.now = func() time.Time { return now }
	for range 4000 {
		if n, err := l.Write([]byte("a header is no text\n")); n != 20 || err != nil {
			t.Fatal(n, err)
		}
	}
	now = now.Add(pause)
	if _, err := l.Write([]byte("again\n")); err != nil {
		t.Fatal(err)
	}
	if got := written.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"grpc: again" suppressed=3999`) {
		t.Errorf("logged:\n%.1000s", got)
	}
}
