package logging

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/journal"
)

// Ensure that a file that has become too large is put aside, and that no more old ones are kept than asked for.
func TestOpen_rotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log, err := Open(Options{Format: JSON, Outputs: []string{path}, Rotation: &Rotation{MaxSizeMB: 1, MaxBackups: 5}})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 400<<10)
	for range 4 {
		log.Info(long)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "log*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("got the files %v, %v; want the log and at least one that was put aside", files, err)
	}
	lines := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(content, []byte(long))
	}
	if lines != 4 {
		t.Errorf("got %d lines in %v, want all 4", lines, files)
	}
	if _, err := Open(Options{Outputs: []string{filepath.Join(path, "no")}, Rotation: &Rotation{}}); err == nil {
		t.Error("a path below a file: got no error")
	}
}

// Ensure that no line is lost of a burst that is longer than a file, and fills several.
func TestRotated_Write_burst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := openFile(path, &Rotation{MaxSizeMB: 1})
	if err != nil {
		t.Fatal(err)
	}
	const count = 64
	burst := bytes.Repeat([]byte(strings.Repeat("x", 64<<10)+"\n"), count)
	if n, err := f.Write(burst); n != len(burst) || err != nil {
		t.Fatalf("wrote %d of %d bytes: %v", n, len(burst), err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(content) > 1<<20 {
			t.Errorf("%s has %d bytes", file, len(content))
		}
		lines += bytes.Count(content, []byte("\n"))
	}
	if lines != count {
		t.Errorf("got %d lines in %v, want %d", lines, files, count)
	}
}

func TestJournalWriter_Write(t *testing.T) {
	type entry struct {
		text     string
		priority journal.Priority
	}
	var got []entry
	w := journalWriter{func(text string, priority journal.Priority, _ map[string]string) error {
		got = append(got, entry{text, priority})
		return nil
	}}
	lines := "{\"level\":\"warn\",\"msg\":\"a\"}\n2026-05-01T11:00:00Z\terror\tb\n{\"level\":\"debug\"}\nplain\n"
	if n, err := w.Write([]byte(lines)); n != len(lines) || err != nil {
		t.Fatalf("got %d, %v; want all %d bytes taken", n, err, len(lines))
	}
	want := []entry{{`{"level":"warn","msg":"a"}`, journal.PriWarning}, {"2026-05-01T11:00:00Z\terror\tb", journal.PriErr},
		{`{"level":"debug"}`, journal.PriDebug}, {"plain", journal.PriInfo}}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	w.send = func(string, journal.Priority, map[string]string) error { return errors.New("no room") }
	if n, err := w.Write([]byte("x\n")); n != 0 || err == nil {
		t.Errorf("a journal that takes nothing: got %d, %v", n, err)
	}
}
