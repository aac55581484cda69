package fetch_test

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/prune"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects/directory"
)

// Ensure that what is no object, such as a link where a file should be, is damage as other bytes are: a restore leaves it out and
// takes what else leads on, and retention names it.
func TestObject_foreign(t *testing.T) {
	dir := t.TempDir()
	content := filepath.Join(dir, "content")
	if err := errors.Join(os.WriteFile(content, []byte("x"), 0o600), os.Mkdir(filepath.Join(dir, "base"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(content, filepath.Join(dir, "base", "aa")); err != nil {
		t.Skip(err)
	}
	store, err := directory.Open(files.Disk, dir, directory.Options{Unique: rand.Text})
	if err != nil {
		t.Fatal(err)
	}
	hash := backup.HashOf([]byte("x"))
	_, err = fetch.Object(t.Context(), store, "base/aa", hash, 10)
	if damage := (*fetch.DamageError)(nil); !errors.As(err, &damage) || damage.Name != "base/aa" {
		t.Errorf("a link: %v", err)
	}
	o := fetch.Prune(t.Context(), store, &prune.Op{Kind: prune.Get, Name: "base/aa", Hash: hash, Most: 10})
	if !o.Damaged || o.Absent || o.Why != "" {
		t.Errorf("retention: %+v", o)
	}
}
