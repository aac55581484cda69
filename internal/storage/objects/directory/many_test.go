package directory_test

import (
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
)

// crowded is a file system with a directory of many files, whose names nobody holds.
type crowded struct {
	env.FS
	dir    string
	names  int
	held   uint64 // when the first of them is looked at
	before runtime.MemStats
}

func (c *crowded) name(i int) string {
	return fmt.Sprintf("%08x-%s", uint32(i)*2654435761, strings.Repeat("x", 180)) // in no order
}

// EachName implements files.Namer.
func (c *crowded) EachName(dir string, f func(string) error) error {
	if dir != c.dir {
		return files.EachName(c.FS, dir, f)
	}
	for i := range c.names {
		if err := f(c.name(i)); err != nil {
			return err
		}
	}
	return nil
}

// List implements env.FS.
func (c *crowded) List(dir string) (names []string, err error) {
	if dir != c.dir {
		return c.FS.List(dir)
	}
	return names, c.EachName(dir, func(name string) error {
		names = append(names, name)
		return nil
	})
}

// Stat implements env.FS.
func (c *crowded) Stat(name string) (os.FileInfo, error) {
	if !strings.HasPrefix(name, c.dir+"/") {
		return c.FS.Stat(name)
	}
	if c.held == 0 {
		var now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&now)
		c.held = max(1, now.HeapAlloc-min(now.HeapAlloc, c.before.HeapAlloc))
	}
	return c.FS.Stat("/b/file")
}

// Ensure that what a list of a directory holds does not depend on how many files others put there: the share of memory of the
// operations on a place bounds it. A page has all it should, also of names in no order.
func TestStore_List_many(t *testing.T) {
	disk := mem(t)
	c := &crowded{FS: disk, dir: "/b/log/0000000000000007", names: 60_000}
	file, err := disk.Create("/b/file")
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := disk.MkdirAll(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, c, "/b")
	runtime.GC()
	runtime.ReadMemStats(&c.before)
	found, more, err := s.List(t.Context(), "log/", "", objects.MaxList)
	if err != nil || len(found) != objects.MaxList || !more {
		t.Fatalf("%d objects, more %t, %v", len(found), more, err)
	}
	if most := uint64(1 << 20); c.held > most {
		t.Errorf("a list of %d names holds %d KiB", c.names, c.held>>10)
	}
	first := make([]string, c.names)
	for i := range first {
		first[i] = "log/0000000000000007/" + c.name(i)
	}
	slices.Sort(first)
	for i := range found {
		if found[i].Name != first[i] {
			t.Fatalf("object %d is %.60s, want %.60s", i, found[i].Name, first[i])
		}
	}
}

// Ensure that lists, in pages of any length, have all objects in their order, whatever else others have put into the directories:
// links, empty directories, names that are none, and trees.
func TestStore_List_pages(t *testing.T) {
	for seed := range int64(3) {
		rng, dir := rand.New(rand.NewSource(seed)), t.TempDir()
		for range 150 {
			var name []string
			for range 1 + rng.Intn(4) {
				name = append(name, string("ab-._A"[rng.Intn(6)])+string("c-."[rng.Intn(3)]))
			}
			path := filepath.Join(dir, filepath.Join(name...))
			switch rng.Intn(8) { // many fail: a file is where a directory should be
			case 0:
				_ = os.MkdirAll(path, 0o700)
			case 1:
				_ = os.MkdirAll(filepath.Dir(path), 0o700)
				_ = os.Symlink("/nowhere/there", path)
			default:
				_ = os.MkdirAll(filepath.Dir(path), 0o700)
				_ = os.WriteFile(path, nil, 0o600)
			}
		}
		var want []string
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			name, relErr := filepath.Rel(dir, path)
			if err == nil && relErr == nil && entry.Type().IsRegular() && objects.CheckName(name) == nil {
				want = append(want, name)
			}
			return err
		})
		if err != nil || len(want) < 10 {
			t.Fatal(want, err)
		}
		slices.Sort(want)
		s := open(t, files.Disk, dir)
		for _, limit := range []int{1, 2, 3, 7, 1000} {
			var got []string
			for after, more := "", true; more; {
				var found []objects.Info
				if found, more, err = s.List(t.Context(), "", after, limit); err != nil || more && len(found) != limit {
					t.Fatal(found, more, err)
				}
				for i := range found {
					after = found[i].Name
					got = append(got, after)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, pages of %d:\n%q, want\n%q", seed, limit, got, want)
			}
		}
	}
}
