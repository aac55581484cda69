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

	"github.com/quorate/quorate/internal/base/reload"
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

// Ensure that what could not be read is tried again at a bounded pace although the files look the same, and that the log is told
// once.
func TestSource_Get_retries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("whole"), 0o600); err != nil {
		t.Fatal(err)
	}
	clock := &hand{now: time.Unix(1, 0)}
	var lines bytes.Buffer
	reads, broken := 0, false
	s, err := reload.Open(reload.Options{What: "texts", Paths: []string{path}, Clock: clock,
		Logger: slog.New(slog.NewTextHandler(&lines, nil))}, func() (int, error) {
		if reads++; broken {
			return 0, errors.New("it is half-written")
		}
		return reads, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1000, 0)
	if err := os.Chtimes(path, at, at); err != nil { // it changes, and looks the same from here on
		t.Fatal(err)
	}
	broken = true
	for range 100 { // connections, within 3.96 seconds
		s.Get()
		clock.now = clock.now.Add(40 * time.Millisecond)
	}
	if reads != 1+4 || strings.Count(lines.String(), "cannot be used") != 1 {
		t.Errorf("%d reads, and %s", reads, &lines)
	}
	broken = false
	clock.now = clock.now.Add(time.Second)
	for range 3 {
		if got := s.Get(); got != 6 {
			t.Errorf("afterwards: what read %d gave, want that of read 6", got)
		}
	}
}
