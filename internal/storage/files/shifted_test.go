package files_test

import (
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/atrest/atresttest"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// Ensure that Pebble gets the descriptor of the file below an encrypted one, by which it asks for read-ahead and syncs ranges.
func TestToPebble_encrypted(t *testing.T) {
	fs := files.ToPebble(atrest.NewFS(files.Disk, atresttest.Ring()))
	name := filepath.Join(t.TempDir(), "file")
	file, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if file.Fd() == vfs.InvalidFd {
		t.Error("a file on the disk has no descriptor")
	}
	if _, err := file.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if _, err := file.SyncTo(1 << 19); err != nil {
		t.Error(err)
	}
	mem := files.ToPebble(atrest.NewFS(filestest.NewMem(), atresttest.Ring()))
	if file, err := mem.Create("file", vfs.WriteCategoryUnspecified); err != nil || file.Fd() != vfs.InvalidFd {
		t.Errorf("a file in memory has a descriptor, or %v", err)
	}
}
