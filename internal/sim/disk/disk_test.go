package disk_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/quorate/quorate/internal/sim/disk"
)

func write(t *testing.T, fs *disk.FS, name, text string, sync bool) {
	t.Helper()
	f, err := fs.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if sync {
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
}

func syncDir(t *testing.T, fs *disk.FS, name string) {
	t.Helper()
	d, err := fs.OpenDir(name)
	if err == nil {
		err = d.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func read(fs *disk.FS, name string) string {
	f, err := fs.Open(name)
	if err != nil {
		return "(missing)"
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// Ensure that a crash keeps synced bytes and names, and nothing else.
func TestFS_Crash_loses(t *testing.T) {
	fs := disk.New()
	write(t, fs, "kept", "abc", true)
	write(t, fs, "empty", "abc", false)
	syncDir(t, fs, "/")
	write(t, fs, "nameless", "abc", true)
	if err := fs.Remove("kept"); err != nil {
		t.Fatal(err)
	}
	after := fs.Crash(disk.LoseAll, nil)
	for name, want := range map[string]string{"kept": "abc", "empty": "", "nameless": "(missing)"} {
		if got := read(after, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// Ensure that a rename happens wholly or not at all, and that the end of a process loses nothing.
func TestFS_Crash_rename(t *testing.T) {
	for seed := range uint64(20) {
		fs := disk.New()
		write(t, fs, "a", "new", true)
		write(t, fs, "b", "old", true)
		syncDir(t, fs, "/")
		if err := fs.Rename("a", "b"); err != nil {
			t.Fatal(err)
		}
		after := fs.Crash(disk.Torn, rand.New(rand.NewPCG(seed, 0)))
		a, b := read(after, "a"), read(after, "b")
		if !(a == "new" && b == "old") && !(a == "(missing)" && b == "new") {
			t.Errorf("seed %d: a is %q, b is %q", seed, a, b)
		}
		if got := read(fs.Crash(disk.KeepAll, nil), "b"); a == "(missing)" && got != "new" {
			t.Errorf("seed %d: b is %q", seed, got)
		}
	}
}

// Ensure that torn writes tear at sectors, and the same way for the same seed.
func TestFS_Crash_torn(t *testing.T) {
	outcome := func(seed uint64) string {
		fs := disk.New()
		write(t, fs, "log", "", true)
		syncDir(t, fs, "/")
		f, err := fs.OpenReadWrite("log")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(bytes.Repeat([]byte{'x'}, 4096), 100); err != nil {
			t.Fatal(err)
		}
		return read(fs.Crash(disk.Torn, rand.New(rand.NewPCG(seed, 0))), "log")
	}
	seen := map[string]bool{}
	for seed := range uint64(30) {
		one, two := outcome(seed), outcome(seed)
		if one != two {
			t.Errorf("seed %d: two outcomes", seed)
		}
		seen[one] = true
		for at := 512; at+512 <= len(one); at += 512 {
			if sector := one[at : at+512]; bytes.Count([]byte(sector), []byte{'x'})%512 != 0 {
				t.Errorf("seed %d: a sector is torn at %d", seed, at)
			}
		}
	}
	if len(seen) < 5 {
		t.Errorf("30 seeds gave %d outcomes", len(seen))
	}
}

func TestFS_faults(t *testing.T) {
	fs := disk.New()
	write(t, fs, "file", "abc", false)
	f, err := fs.OpenReadWrite("file")
	if err != nil {
		t.Fatal(err)
	}
	fs.Full = true
	if _, err := f.Write([]byte("x")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("full: %v", err)
	}
	fs.Full, fs.Broken = false, true
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("broken: %v", err)
	}
	fs.Broken = false
	fs.DieAfter(1)
	if err := f.Sync(); err != nil {
		t.Errorf("the last operation: %v", err)
	}
	if err := f.Sync(); !errors.Is(err, disk.ErrDead) || !fs.Dead() {
		t.Errorf("dead: %v", err)
	}
}

// Ensure that a copy holds the contents of the disk, durable or not, and that neither changes the other from then on.
func TestFS_Copy(t *testing.T) {
	fs := disk.New()
	write(t, fs, "kept", "abc", true)
	syncDir(t, fs, "/")
	write(t, fs, "pending", "abc", false)
	if err := fs.Link("kept", "linked"); err != nil {
		t.Fatal(err)
	}
	running := fs.Copy()
	write(t, fs, "kept", "xyz", true)
	if err := running.Remove("linked"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"kept": "abc", "pending": "abc", "linked": "(missing)"} {
		if got := read(running, name); got != want {
			t.Errorf("copy: %s is %q, want %q", name, got, want)
		}
	}
	if got := read(fs, "linked"); got != "abc" {
		t.Errorf("the disk changed with its copy: %q", got)
	}
	after := running.Crash(disk.LoseAll, nil)
	if kept, pending := read(after, "kept"), read(after, "pending"); kept != "abc" || pending != "(missing)" {
		t.Errorf("a copy after a crash: kept is %q, pending %q", kept, pending)
	}
}
