//go:build unix

package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/keysource"
)

// Ensure that a lock on a disk that cannot be written to is taken on a regular file alone: a pipe there is not waited for, and
// a link is not followed.
func TestUnwritableFS_Lock(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{unix.Mkfifo(at("pipe"), 0o600), os.Symlink(at("file"), at("link")), os.Mkdir(at("directory"), 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, locks := range map[string]bool{"file": true, "missing": true, "pipe": false, "link": false, "directory": false} {
		done := make(chan error, 1)
		go func() {
			_, err := unwritableFS{files.Disk}.Lock(at(name))
			done <- err
		}()
		select {
		case err := <-done:
			if (err == nil) != locks {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: it waits for ever", name)
		}
	}
}

// Ensure that no command that reads the data of a stopped member takes a lock by a link, which would empty the file at its end.
func TestOpenStopped_linkedLock(t *testing.T) {
	other, dir := filepath.Join(t.TempDir(), "other"), t.TempDir()
	member := filepath.Join(dir, memberDir)
	for _, err := range []error{os.WriteFile(other, []byte("precious"), 0o600), os.Mkdir(member, 0o700),
		os.WriteFile(filepath.Join(member, "boots"), nil, 0o600), os.Symlink(other, filepath.Join(dir, lockName))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := OpenToRead(t.Context(), dir, "", keysource.Source{})
	if got, _ := os.ReadFile(other); string(got) != "precious" || err == nil ||
		!strings.Contains(err.Error(), "LOCK cannot be locked: it is a symbolic link, and no regular file") {
		t.Errorf("%v, and the file at the end of the link has %q", err, got)
	}
}
