//go:build unix

package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/files"
)

// Ensure that the machine's disk opens no pipe, socket, directory or link in place of a file, and no pipe in place of a directory; that it
// waits for none; and that it follows a link to a directory.
func TestDisk_otherKinds(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{os.WriteFile(at("file"), []byte("precious"), 0o600), os.Mkdir(at("directory"), 0o700),
		unix.Mkfifo(at("pipe"), 0o600), unix.Mknod(at("socket"), unix.S_IFSOCK|0o600, 0), os.Symlink(at("file"), at("link")),
		os.Symlink(at("absent"), at("dangling")), os.Symlink(at("directory"), at("linked"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	within := func(what string, f func() error) error {
		t.Helper()
		done := make(chan error, 1)
		go func() { done <- f() }()
		select {
		case err := <-done:
			return err
		case <-time.After(10 * time.Second):
			t.Fatalf("%s waits for ever", what)
			return nil
		}
	}
	closed := func(f interface{ Close() error }, err error) error {
		if err == nil {
			err = f.Close()
		}
		return err
	}
	disk, pebble := files.Disk, files.ToPebble(files.Disk)
	openers := map[string]func(name string) error{
		"Open":           func(name string) error { return closed(disk.Open(name)) },
		"OpenSequential": func(name string) error { return closed(disk.OpenSequential(name)) },
		"OpenReadWrite":  func(name string) error { return closed(disk.OpenReadWrite(name)) },
		"Pebble's Open":  func(name string) error { return closed(pebble.Open(name)) },
		"ReuseForWrite": func(name string) error {
			return closed(pebble.ReuseForWrite(name, name, vfs.WriteCategoryUnspecified))
		},
		"Lock": func(name string) error { return closed(disk.Lock(name)) },
	}
	for what, open := range openers {
		for _, kind := range []string{"directory", "pipe", "socket", "link", "dangling", "linked"} {
			if err := within(what+" of a "+kind, func() error { return open(at(kind)) }); !errors.Is(err, files.ErrOtherKind) {
				t.Errorf("%s of a %s: %v", what, kind, err)
			}
		}
		if err := open(at("file")); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Lstat(at("absent")); err == nil {
			t.Fatalf("%s made what a link leads to", what)
		}
		if got, _ := os.ReadFile(at("file")); what != "Lock" && string(got) != "precious" {
			t.Errorf("%s: the file has %q", what, got)
		}
		if err := os.WriteFile(at("file"), []byte("precious"), 0o600); err != nil { // a lock empties it
			t.Fatal(err)
		}
	}
	list := func(name string) error {
		_, err := disk.List(name)
		return err
	}
	for what, open := range map[string]func(string) error{
		"OpenDir": func(name string) error { return closed(disk.OpenDir(name)) }, "List": list,
	} {
		for kind, opens := range map[string]bool{"directory": true, "linked": true, "pipe": false, "socket": false, "file": false} {
			if err := within(what+" of a "+kind, func() error { return open(at(kind)) }); (err == nil) != opens {
				t.Errorf("%s of a %s: %v", what, kind, err)
			}
		}
	}
	type another struct{ env.FS }
	for kind, want := range map[string]bool{"directory": true, "absent": true, "linked": false, "pipe": false, "file": false} {
		if err := files.CheckDirectory(disk, at(kind)); (err == nil) != want || files.CheckDirectory(another{disk}, at(kind)) != nil {
			t.Errorf("%s as a directory: %v", kind, err)
		}
	}
}
