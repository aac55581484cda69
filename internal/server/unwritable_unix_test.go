//go:build unix

package server

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/storage/files"
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
