package snapshot

import (
	"fmt"
	"io"

	"github.com/quorate/quorate/internal/base/env"
)

// Verify reads the snapshot in dir completely and compares it with its manifest.
func Verify(fs env.FS, dir string) (Manifest, error) {
	m, err := loadManifest(fs, dir)
	if err != nil {
		return Manifest{}, err
	}
	buffer := make([]byte, copyBytes)
	for _, f := range m.Files {
		size, sum, err := copyFile(fs, fs.PathJoin(dir, f.Name), io.Discard, -1, buffer)
		if err != nil {
			return Manifest{}, err
		}
		if size != f.Size || sum != f.Sum {
			return Manifest{}, fmt.Errorf("%w: %s", ErrCorrupt, f.Name)
		}
	}
	return m, nil
}
