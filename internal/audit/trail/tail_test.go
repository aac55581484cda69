package trail_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/audit/trail"
	"github.com/quorate/quorate/internal/base/env"
)

func all(*audit.Entry) bool { return true }

// Ensure that the end of a file is read, the newest record first, as far as was asked for; that a long file is not read as a whole;
// that lines which are no records are left out; and that nothing is read from what took the place of the file.
func TestTrail_Tail(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit.log")
	records := start(t, name, trail.Rotation{})
	for i := range 9 {
		record(records, fmt.Sprintf("/k/%d", i))
	}
	records.Close(time.Minute)
	read := func(most int, matches func(*audit.Entry) bool) trail.Tail {
		t.Helper()
		tail, err := records.Tail(most, matches)
		if err != nil {
			t.Fatal(err)
		}
		return tail
	}
	got := read(200, all)
	if len(got.Lines) != 11 || got.Looked != 11 || !got.Whole || got.Output != name ||
		!strings.Contains(string(got.Lines[0]), `"event":"ends"`) || !strings.Contains(string(got.Lines[1]), `"/k/8"`) {
		t.Errorf("%d lines of %d, whole %v, the last %s", len(got.Lines), got.Looked, got.Whole, got.Lines[0])
	}
	if got = read(2, func(e *audit.Entry) bool { return e.Op == "put" }); len(got.Lines) != 2 || got.Looked != 3 || got.Whole {
		t.Errorf("%d lines of %d, whole %v", len(got.Lines), got.Looked, got.Whole)
	}
	if got = read(9, func(e *audit.Entry) bool { return e.Below([]byte("/k/0")) }); len(got.Lines) != 1 || !got.Whole {
		t.Errorf("%d lines, whole %v", len(got.Lines), got.Whole)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	long := strings.Repeat(fmt.Sprintf(`{"seq":7,"op":"get","about":"%s"}`+"\nnothing\n", strings.Repeat("x", 1000)), 1100)
	if _, err := f.WriteString(long + `{"seq":8,"op":"unfinished`); err != nil {
		t.Fatal(err)
	}
	got = read(5000, all)
	if got.Whole || len(got.Lines) < 900 || len(got.Lines) > 1040 || !strings.Contains(string(got.Lines[0]), `"seq":7`) {
		t.Errorf("%d lines, whole %v: %s", len(got.Lines), got.Whole, got.Lines[0])
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := records.Tail(1, all); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("removed: %v", err)
	}
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := records.Tail(1, all); err == nil || !strings.Contains(err.Error(), "holds something else") {
		t.Errorf("a directory: %v", err)
	}
	none := trail.New(trail.Options{Clock: env.WallClock{}, Logger: slog.New(slog.DiscardHandler),
		Sinks: []trail.SinkOptions{{Name: "syslog", From: trail.NewChain()}}})
	if _, err := none.Tail(1, all); !errors.Is(err, trail.ErrNoFile) {
		t.Errorf("no file: %v", err)
	}
}
