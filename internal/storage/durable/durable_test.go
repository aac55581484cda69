package durable_test

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

func read(t *testing.T, fs env.FS, path string) string {
	t.Helper()
	file, err := fs.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return "none"
	}
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(file)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Every level was made by another process, which did not sync: only the deepest one would be if the others were skipped.
func TestMakeDir_levelsThereAlready(t *testing.T) {
	fs := filestest.NewCrashableMem()
	if err := fs.MkdirAll("/a/b", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.MakeDir(fs, "/a/b/c/d"); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.CrashClone(filestest.CrashCloneCfg{}).Stat("/a/b/c/d"); err != nil {
		t.Errorf("after a power loss: %v", err)
	}
}

func TestMakeDir_fileInTheWay(t *testing.T) {
	fs := filestest.NewMem()
	if err := durable.WriteFile(fs, "file", nil); err != nil {
		t.Fatal(err)
	}
	if err := durable.MakeDir(fs, "file/dir"); err == nil {
		t.Error("got no error, want one")
	}
}

// crashes is a file system that copies what a power loss would leave before every change.
type crashes struct {
	*filestest.MemFS
	left []*filestest.MemFS
}

func (c *crashes) note() { c.left = append(c.left, c.CrashClone(filestest.CrashCloneCfg{})) }

func (c *crashes) Create(name string) (env.File, error) {
	c.note()
	return c.MemFS.Create(name)
}

func (c *crashes) Rename(from, to string) error {
	c.note()
	defer c.note()
	return c.MemFS.Rename(from, to)
}

func TestWriteFile_powerLoss(t *testing.T) {
	fs := &crashes{MemFS: filestest.NewCrashableMem()}
	if err := durable.MakeDir(fs, "/d"); err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{{"none", "none", "none", "one"}, {"one", "one", "one", "two"}} {
		fs.left = nil
		if err := durable.WriteFile(fs, "/d/f", []byte(want[3])); err != nil {
			t.Fatal(err)
		}
		fs.note()
		var got []string
		for _, left := range fs.left {
			got = append(got, read(t, left, "/d/f"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("write %d: power losses left %q, want %q", i, got, want)
		}
	}
}

func TestReadSealed_everyFlipIsFound(t *testing.T) {
	fs := filestest.NewMem()
	const text = "number 1\nname x\n"
	if err := durable.WriteSealed(fs, "f", text); err != nil {
		t.Fatal(err)
	}
	if got, err := durable.ReadSealed(fs, "f"); err != nil || got != text {
		t.Fatalf("got %q, %v", got, err)
	}
	whole := read(t, fs, "f")
	for i := range whole {
		damaged := []byte(whole)
		damaged[i] ^= 1
		if err := durable.WriteFile(fs, "f", damaged); err != nil {
			t.Fatal(err)
		}
		if got, err := durable.ReadSealed(fs, "f"); !errors.Is(err, durable.ErrCorrupt) {
			t.Errorf("byte %d flipped: got %q, %v, want ErrCorrupt", i, got, err)
		}
	}
	for length := range whole {
		if err := durable.WriteFile(fs, "f", []byte(whole[:length])); err != nil {
			t.Fatal(err)
		}
		if _, err := durable.ReadSealed(fs, "f"); !errors.Is(err, durable.ErrCorrupt) {
			t.Errorf("cut to %d: got %v, want ErrCorrupt", length, err)
		}
	}
	if _, err := durable.ReadSealed(fs, "missing"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("got %v", err)
	}
}
