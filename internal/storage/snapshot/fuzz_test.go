package snapshot_test

import (
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

// The file that says which store counts is read as it was written, or not at all.
func FuzzLoad(f *testing.F) {
	f.Add("quorate store 1\ngeneration 3\ninstalled 4711 3\n", true)
	f.Add("quorate store 1\ngeneration 18446744073709551615\ninstalled 0 0\n", true)
	f.Add("quorate store 2\n", false)
	f.Fuzz(func(t *testing.T, text string, sealed bool) {
		fs := filestest.NewMem()
		name := fs.PathJoin(dataDir, snapshot.StoresDir, "CURRENT")
		if err := fs.MkdirAll(fs.PathDir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		write := durable.WriteSealed
		if !sealed {
			write = func(fs env.FS, path, text string) error { return durable.WriteFile(fs, path, []byte(text)) }
		}
		if err := write(fs, name, text); err != nil {
			t.Fatal(err)
		}
		current, err := snapshot.Load(fs, dataDir)
		if err != nil {
			return
		}
		if err := snapshot.Switch(fs, dataDir, current); err != nil {
			t.Fatal(err)
		}
		if again, err := snapshot.Load(fs, dataDir); err != nil || again != current {
			t.Errorf("%q is %+v, and then %+v, %v", text, current, again, err)
		}
	})
}
