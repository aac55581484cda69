package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// Ensure that a manifest of very many small files is refused, as is one that is longer than a store's, and that as many files as
// their bytes are enough for are taken.
func TestReadManifest_manyFiles(t *testing.T) {
	manifest := func(files int, size int64) (m Manifest) {
		for i := range files {
			m.Files = append(m.Files, File{Name: fmt.Sprintf("%06d", i), Size: size})
		}
		return m
	}
	for name, c := range map[string]struct {
		of   Manifest
		fits bool
	}{
		"small files":                   {manifest(fewFiles, 0), true},
		"more small files":              {manifest(fewFiles+1, 0), false},
		"files of a store":              {manifest(100_000, 1<<20), true},
		"more files than a store's are": {manifest(400_000, 1<<20), false},
	} {
		if got, err := readManifest(bytes.NewReader(c.of.append(nil))); (err == nil) != c.fits || err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %d of %d files, and %v", name, len(got.Files), len(c.of.Files), err)
		}
	}
}
