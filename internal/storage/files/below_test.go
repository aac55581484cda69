package files_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/storage/files"
)

// Ensure that a directory that others may change is a file system like others, that no operation leads out of it, by a link or by
// a name, and that one which takes its place is the one that is used.
func TestBelow(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	fs := files.Below(files.Disk, dir)
	checkFS(t, fs, dir)
	if err := os.WriteFile(filepath.Join(elsewhere, "a"), []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "own"), 0o700), os.WriteFile(filepath.Join(dir, "own", "a"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(elsewhere, filepath.Join(dir, "link")), os.Symlink("..", filepath.Join(dir, "up")),
		os.Symlink(filepath.Join(elsewhere, "a"), filepath.Join(dir, "file"))); err != nil {
		t.Skip(err) // a system on which only administrators make links
	}
	own := filepath.Join(dir, "own", "a")
	for _, at := range []string{filepath.Join(dir, "link", "a"), filepath.Join(dir, "up", filepath.Base(elsewhere), "a"),
		filepath.Join(elsewhere, "a"), filepath.Join(dir, "..", "x"), filepath.Join(dir, "link", "x"), filepath.Dir(dir), dir + "2"} {
		for what, f := range map[string]func() error{
			"create":   func() error { return opened(fs.Create(at)) },
			"open":     func() error { return opened(fs.Open(at)) },
			"read":     func() error { return opened(fs.OpenSequential(at)) },
			"write":    func() error { return opened(fs.OpenReadWrite(at)) },
			"open dir": func() error { return opened(fs.OpenDir(filepath.Dir(at))) },
			"list":     func() error { _, err := fs.List(filepath.Dir(at)); return err },
			"each":     func() error { return files.EachName(fs, filepath.Dir(at), func(string) error { return nil }) },
			"stat":     func() error { _, err := fs.Stat(at); return err },
			"link":     func() error { return fs.Link(own, at) },
			"link of":  func() error { return fs.Link(at, own+"2") },
			"rename":   func() error { return fs.Rename(own, at) },
			"take":     func() error { return fs.Rename(at, own+"2") },
			"remove":   func() error { return fs.Remove(at) },
			"all":      func() error { return fs.RemoveAll(at) },
			"mkdir":    func() error { return fs.MkdirAll(filepath.Join(at, "d"), 0o700) },
			"lock":     func() error { _, err := fs.Lock(at); return err },
		} {
			if isDir := filepath.Dir(at) == dir; isDir && (what == "open dir" || what == "list" || what == "each") {
				continue // the directory itself
			}
			if err := f(); err == nil {
				t.Errorf("%s %s: it was done", what, at)
			}
		}
	}
	if err := opened(fs.Open(filepath.Join(dir, "file"))); !errors.Is(err, files.ErrOtherKind) {
		t.Errorf("a link to a file: %v", err)
	}
	if err := opened(fs.Create(filepath.Join(dir, "file"))); err != nil { // the link goes, not the file
		t.Error(err)
	}
	left, err := os.ReadDir(elsewhere)
	content, readErr := os.ReadFile(filepath.Join(elsewhere, "a"))
	if err := errors.Join(err, readErr); err != nil || len(left) != 1 || string(content) != "theirs" {
		t.Errorf("elsewhere are %v, %q, %v", left, content, err)
	}
	if _, err := os.Stat(own); err != nil {
		t.Error(err)
	}
	if err := errors.Join(os.Rename(dir, dir+"-away"), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat(own); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in another directory of the name: %v", err)
	}
	if own := disk.New(); files.Below(own, "/d") != env.FS(own) {
		t.Error("a disk without links is another one")
	}
}

// opened closes a file that should not be there.
func opened(f env.File, err error) error {
	if err == nil {
		return f.Close()
	}
	return err
}

// Ensure that each name of a directory comes once, however many there are, on the machine's disk and on others, and that an error
// ends it.
func TestEachName(t *testing.T) {
	dir, own := t.TempDir(), disk.New()
	if err := own.MkdirAll("/d", 0o700); err != nil {
		t.Fatal(err)
	}
	const many = 600
	for i := range many {
		name := fmt.Sprint(i)
		file, err := own.Create("/d/" + name)
		if err := errors.Join(err, os.WriteFile(filepath.Join(dir, name), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for at, fs := range map[string]env.FS{dir: files.Below(files.Disk, dir), "/d": own} {
		seen := map[string]int{}
		if err := files.EachName(fs, at, func(name string) error {
			seen[name]++
			return nil
		}); err != nil || len(seen) != many || seen["599"] != 1 {
			t.Errorf("%s: %d names, %v", at, len(seen), err)
		}
		calls, enough := 0, errors.New("enough")
		if err := files.EachName(fs, at, func(string) error {
			calls++
			return enough
		}); !errors.Is(err, enough) || calls != 1 {
			t.Errorf("%s: %d calls, %v", at, calls, err)
		}
		if err := files.EachName(fs, at+"/none", nil); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a directory that is not there: %v", at, err)
		}
	}
}
