package trail_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/audit/trail"
	"github.com/quorate/quorate/internal/base/env"
)

var everything = func() *audit.Policy {
	p, err := audit.Parse([]byte(`{"rules": [{"level": "metadata"}]}`))
	if err != nil {
		panic(err)
	}
	return p
}()

// start opens a file and runs a trail into it.
func start(t *testing.T, name string, r trail.Rotation) *trail.Trail {
	t.Helper()
	file, from, err := trail.OpenFile(name, r)
	if err != nil {
		t.Fatal(err)
	}
	running := trail.New(trail.Options{Member: 1, Bytes: 1 << 20, Deadline: time.Second, Clock: env.WallClock{},
		Logger: slog.New(slog.DiscardHandler),
		Sinks:  []trail.SinkOptions{{Name: name, Port: file, Required: true, From: from}}})
	running.Run()
	return running
}

func record(to *trail.Trail, key string) {
	to.Record(everything, &audit.Event{Op: audit.OpPut, User: "alice", Parts: []audit.Part{{Key: []byte(key)}}})
}

func verify(t *testing.T, names ...string) *audit.Report {
	t.Helper()
	var files []audit.File
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, audit.File{Name: filepath.Base(name), Lines: f})
	}
	report, err := audit.Verify(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Ensure that a process goes on in the chain of its file, also behind what a crash left, and that all of it verifies.
func TestOpenFile_resumes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "new", "audit.log")
	for i, crash := range []func(text string) string{
		func(text string) string { return text },
		func(text string) string { return text[:len(text)-30] },
		func(text string) string { return strings.TrimSuffix(text, "\n") },
		func(text string) string { return text },
	} {
		running := start(t, name, trail.Rotation{})
		record(running, "a")
		record(running, "b")
		running.Close(5 * time.Second)
		if r := verify(t, name); r.Broken() {
			t.Fatalf("start %d: %+v", i, r.Findings)
		}
		if err := os.WriteFile(name, []byte(crash(read(t, name))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(read(t, name), `"why":"resumes"`); n != 3 {
		t.Errorf("%d starts resumed", n)
	}
}

// Ensure that what is no file of records is refused with what to do, and is left as it is.
func TestOpenFile_refused(t *testing.T) {
	dir := t.TempDir()
	foreign, fifo := filepath.Join(dir, "foreign"), filepath.Join(dir, "fifo")
	below := filepath.Join(foreign, "audit.log")
	if err := os.WriteFile(foreign, []byte("{\"level\":\"info\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{foreign: "holds something else", fifo: "no regular file", dir: "no regular file",
		below: "not a directory"} {
		if _, _, err := trail.OpenFile(name, trail.Rotation{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	if got := read(t, foreign); got != "{\"level\":\"info\"}\n" {
		t.Errorf("the file was changed: %q", got)
	}
}

// Ensure that two members, or two outputs of one, cannot write into one file: their chains would stand in each other.
func TestOpenFile_held(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit.log")
	running := start(t, name, trail.Rotation{})
	if _, _, err := trail.OpenFile(name, trail.Rotation{}); err == nil || !strings.Contains(err.Error(), "a file of its own") {
		t.Errorf("a second one opened the file: %v", err)
	}
	record(running, "a")
	running.Close(5 * time.Second)
	if r := verify(t, name); r.Broken() {
		t.Errorf("%+v", r.Findings)
	}
	start(t, name, trail.Rotation{}).Close(5 * time.Second)
}

// Ensure that a file that is deleted, replaced or cut while it is written to is begun anew within two seconds, and says so, and
// that a fifo in its place blocks nobody but is told.
func TestFile_gone(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "audit.log")
	running := start(t, name, trail.Rotation{})
	defer running.Close(5 * time.Second)
	until := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !done(); {
			if time.Now().After(end) {
				t.Fatal(what)
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	has := func(text string) func() bool {
		return func() bool {
			got, _ := os.ReadFile(name)
			return strings.Contains(string(got), text)
		}
	}
	record(running, "a")
	until("nothing is written", has(`"key":"a"`))
	for why, do := range map[string]func() error{
		audit.Deleted:  func() error { return os.Remove(name) },
		audit.Replaced: func() error { return os.Rename(name, name+".away") },
		audit.Cut:      func() error { return os.Truncate(name, 10) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if why == audit.Replaced {
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		until("nobody notices that it was "+why, has(`"why":"`+why+`"`))
		record(running, why)
		until("nothing is written once it was "+why, has(`"key":"`+why+`"`))
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	until("a fifo is not told", func() bool {
		record(running, "x")
		sinks, _ := running.Status()
		return strings.Contains(sinks[0].Trouble, "no regular file any more")
	})
	until("it does not block", func() bool { sinks, _ := running.Status(); return sinks[0].Blocked })
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	until("it does not come back", func() bool { sinks, _ := running.Status(); return !sinks[0].Blocked })
	foreign := filepath.Join(dir, "foreign")
	if err := errors.Join(os.WriteFile(foreign, []byte("not ours\n"), 0o600), os.Remove(name), os.Symlink(foreign, name)); err != nil {
		t.Fatal(err)
	}
	until("a foreign file is not told", func() bool {
		record(running, "x")
		sinks, _ := running.Status()
		return strings.Contains(sinks[0].Trouble, "holds something else")
	})
	if got, err := os.ReadFile(foreign); err != nil || string(got) != "not ours\n" {
		t.Errorf("the foreign file has %q, %v", got, err)
	}
}

// Ensure that a file that is full is put aside, that old ones are removed, and that the chain goes through all that are left.
func TestFile_rotates(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "audit.log")
	running := start(t, name, trail.Rotation{MaxSizeMB: 1, MaxBackups: 3})
	long := strings.Repeat("k", 500)
	for i := range 10_000 {
		record(running, long)
		for i%100 == 0 {
			if sinks, _ := running.Status(); sinks[0].WaitingBytes < 100<<10 {
				break
			}
			<-time.After(time.Millisecond)
		}
	}
	running.Close(10 * time.Second)
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) < 4 {
		t.Fatalf("got %v, %v", names, err)
	}
	for _, name := range names {
		if info, err := os.Stat(name); err != nil || info.Size() > 1<<20 {
			t.Errorf("%s has %d bytes, %v", name, info.Size(), err)
		}
	}
	if sinks, _ := running.Status(); sinks[0].Dropped > 0 {
		t.Errorf("%d records were dropped", sinks[0].Dropped)
	}
	if r := verify(t, names...); r.Broken() {
		t.Errorf("got %+v", r.Findings)
	}
}
