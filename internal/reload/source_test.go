package reload_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/reload"
)

type hand struct{ now time.Time }

func (h *hand) Now() time.Time { return h.now }

// Ensure that a change is read, that what cannot be read changes nothing, and that files are looked at once in an interval.
func TestSource_Get(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write := func(text string) {
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	clock := &hand{now: time.Unix(1, 0)}
	var lines bytes.Buffer
	file := reload.File{Flag: "--file", Path: path}
	open := func() (*reload.Source[string], error) {
		return reload.Open(reload.Options{
			What: "texts", Paths: []string{path, ""}, Interval: time.Second, Clock: clock,
			Logger: slog.New(slog.NewTextHandler(&lines, nil)),
		}, func() (string, error) {
			raw, err := file.Bytes()
			if err == nil && string(raw) == "bad" {
				err = errors.New("it is bad")
			}
			return string(raw), err
		})
	}
	if _, err := open(); err == nil || err.Error() != "--file "+path+": no such file or directory" {
		t.Errorf("without a file: %v", err)
	}
	write("one")
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		content string
		pause   time.Duration
		want    string
	}{{"two", 0, "one"}, {"two", time.Second, "two"}, {"bad", time.Second, "two"}, {"three", time.Second - 1, "two"}, {"three", 1, "three"}} {
		write(step.content)
		clock.now = clock.now.Add(step.pause)
		if got := s.Get(); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	clock.now = clock.now.Add(time.Second)
	if err := os.Remove(path); err != nil || s.Get() != "three" || s.Get() != "three" {
		t.Errorf("after it vanished: %q, %v", s.Get(), err)
	}
	if n := strings.Count(lines.String(), "cannot be used"); n != 2 {
		t.Errorf("%d lines of what cannot be used, want one for each change:\n%s", n, &lines)
	}
}
