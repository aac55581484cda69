package snapshot

import (
	"bytes"
	"testing"
)

// The head of a snapshot names files: behind a checksum that any process can compute, no name leads out of the directory.
func FuzzDecodeFiles(f *testing.F) {
	m := Manifest{Files: []File{{Name: "000004.sst", Size: 12, Sum: 7}, {Name: "MANIFEST-000001", Size: 1 << 40}}}
	encoded := m.append(nil)
	f.Add(encoded[manifestHead : len(encoded)-4])
	f.Fuzz(func(t *testing.T, src []byte) {
		m, err := decodeFiles(src)
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if !validName(file.Name) || file.Size < 0 {
				t.Fatalf("accepted: %+v", file)
			}
		}
		again, err := readManifest(bytes.NewReader(m.append(nil)))
		if err != nil || len(again.Files) != len(m.Files) {
			t.Fatalf("%d files, and then %d, %v", len(m.Files), len(again.Files), err)
		}
	})
}
