package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/keysource"
)

// Ensure that a member finds while it runs whatever keeps its next start from opening its data, and a key that is first in its
// file and has not wrapped yet; and that a rotation by such a key makes all well again.
func TestKeyCheck(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	write := func(mode os.FileMode, letters string) {
		t.Helper()
		text := ""
		for i := range len(letters) {
			key := bytes.Repeat([]byte{letters[i]}, atrest.KeyBytes)
			key[0] = 0xff
			text += base64.StdEncoding.EncodeToString(key) + "\n"
		}
		_ = os.Remove(file)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(0o400, "a")
	source := keysource.Source{KeyFile: file}
	ring, err := source.Create(t.Context(), files.Disk, dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	k, at := &keyCheck{fs: files.Disk, dataDir: dir, ring: ring, source: source}, filepath.Join(dir, atrest.RingFile)
	whole, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name    string
		happens func() error
		says    string // empty: the next start would open it
		rotate  bool   // the first key of the file is another one
	}{
		{"nothing", func() error { return nil }, "", false},
		{"a new key, not rotated", func() error { write(0o400, "ba"); return nil }, "", true},
		{"the former key removed too early", func() error { write(0o400, "b"); return nil }, "which " + file + " lacks", true},
		{"readable by all", func() error { write(0o444, "a"); return nil }, "others than its owner", false},
		{"no key file", func() error { return os.Remove(file) }, "no such file", false},
		{"no ring", func() error { write(0o400, "a"); return os.Remove(at) }, "is not in " + dir, false},
		{"a ring of others", func() error {
			other := t.TempDir()
			if _, err := source.Create(t.Context(), files.Disk, other, time.Now()); err != nil {
				return err
			}
			return os.Rename(filepath.Join(other, atrest.RingFile), at)
		}, "is an older one, or another member's", false},
		{"a damaged ring", func() error { return os.WriteFile(at, whole[:len(whole)/2], 0o600) }, "keyring", false},
		{"all as before", func() error { return os.WriteFile(at, whole, 0o600) }, "", false},
	} {
		if err := row.happens(); err != nil {
			t.Fatal(err)
		}
		got := k.openAgain(t.Context())
		if (got.GetTrouble() == "") != (row.says == "") || !strings.Contains(got.GetTrouble(), row.says) {
			t.Errorf("%s: got %q", row.name, got.GetTrouble())
		}
		if rotate := got.GetCurrent() != "" && got.GetCurrent() != got.GetWrappedBy(); rotate != row.rotate || !got.GetAsked() {
			t.Errorf("%s: got %v", row.name, got)
		}
	}
	write(0o400, "c") // the former key is lost, and the process still has what it wrapped
	if _, err := source.Rotate(t.Context(), ring, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := k.openAgain(t.Context()); got.GetTrouble() != "" || got.GetCurrent() != got.GetWrappedBy() {
		t.Errorf("after a rotation: got %v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	k.source.KMS = "unix://" + filepath.Join(dir, "away.sock")
	if got := k.openAgain(ctx); got.GetTrouble() != "" || got.GetCurrent() != "" {
		t.Errorf("a key service that wraps nothing yet, and is away: got %v", got)
	}
}
