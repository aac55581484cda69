package logging_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/quorate/quorate/internal/ctl/logging"
)

// record logs one record with a fixed time and returns the line.
func record(t *testing.T, format logging.Format, level slog.Level, msg string, attrs ...slog.Attr) string {
	t.Helper()
	var out bytes.Buffer
	r := slog.NewRecord(time.Date(2026, 5, 1, 12, 0, 0, 1000, time.FixedZone("", 3600)), level, msg, 0)
	r.AddAttrs(attrs...)
	if err := logging.NewHandler(&out, slog.LevelDebug, format).Handle(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestHandler_Handle(t *testing.T) {
	prefix := `{"level":"info","ts":"2026-05-01T11:00:00.000001Z","msg":"m"`
	for _, row := range []struct {
		name string
		attr slog.Attr
		want string
	}{
		{"text", slog.String("k", "a\"b\\\n\t\x01é<"), `,"k":"a\"b\\\n\t\u0001é<"`},
		{"broken text", slog.String("k", "a\xffb"), `,"k":"a\ufffdb"`},
		{"numbers", slog.Group("k", slog.Int("i", -1), slog.Uint64("u", 1<<63)), `,"k":{"i":-1,"u":9223372036854775808}`},
		{"switch", slog.Bool("k", true), `,"k":true`},
		{"duration", slog.Duration("took", 1500*time.Millisecond), `,"took":"1.5s"`},
		{"time", slog.Time("k", time.Unix(0, 0)), `,"k":"1970-01-01T00:00:00.000000Z"`},
		{"error", slog.Any("err", errors.New("no")), `,"err":"no"`},
		{"list", slog.Any("k", []string{"a", "b"}), `,"k":["a","b"]`},
		{"a type with a text", slog.Any("k", netip.MustParseAddr("1.2.3.4")), `,"k":"1.2.3.4"`},
		{"nothing", slog.Any("k", nil), `,"k":null`},
		{"an empty group", slog.Group("k"), ``},
		{"a list of errors", slog.Any("err", errors.Join(errors.New("a"), errors.New("b"))), `,"err":"a\nb"`},
		{"a nil pointer with a text", slog.Any("k", (*netip.Addr)(nil)), `,"k":"<nil>"`},
		{"keys of the line itself", slog.Group("", slog.String("level", "x"), slog.Int("time", 1)), `,"level":"x","time":1`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := record(t, logging.JSON, slog.LevelInfo, "m", row.attr)
			if want := prefix + row.want + "}\n"; got != want {
				t.Errorf("got  %swant %s", got, want)
			}
		})
	}
}

func TestHandler_Handle_console(t *testing.T) {
	got := record(t, logging.Console, slog.LevelWarn, "slow disk", slog.Int("term", 7))
	if want := "2026-05-01T11:00:00.000001Z\twarn\tslow disk\t{\"term\":7}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := record(t, logging.Console, slog.LevelError, "m"); got != "2026-05-01T11:00:00.000001Z\terror\tm\n" {
		t.Errorf("got %q", got)
	}
}

// Ensure that the handler obeys the rules of slog.
func TestHandler_slogtest(t *testing.T) {
	var out bytes.Buffer
	h := logging.NewHandler(&out, slog.LevelInfo, logging.JSON)
	err := slogtest.TestHandler(h, func() []map[string]any {
		var lines []map[string]any
		for line := range strings.Lines(out.String()) {
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			m["time"] = m["ts"]
			if m["ts"] == "0001-01-01T00:00:00.000000Z" {
				delete(m, "time")
			}
			lines = append(lines, m)
		}
		return lines
	})
	if err != nil {
		t.Error(err)
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var stdout, stderr bytes.Buffer
	logger, err := logging.Open(logging.Options{Level: "warn", Format: logging.JSON,
		Outputs: []string{"default", "stdout", path}, Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		t.Fatal(err)
	}
	logger.Info("unheard")
	logger.Warn("heard", "k", 1)
	if err := logger.Close(); err != nil {
		t.Fatal(err)
	}
	inFile, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if stdout.String() != stderr.String() || string(inFile) != stderr.String() {
		t.Errorf("outputs differ: %q %q %q", &stdout, &stderr, inFile)
	}
	if got := stderr.String(); strings.Count(got, "\n") != 1 ||
		!strings.Contains(got, `"caller":"logging/handler_test.go:`) {
		t.Errorf("got %q, want one line with its caller", got)
	}
	if _, err := logging.Open(logging.Options{Outputs: []string{t.TempDir()}, Stderr: io.Discard}); err == nil {
		t.Error("a directory as output: got no error")
	}
}
