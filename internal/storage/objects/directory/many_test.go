package directory_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/directory"
)

// crowded is a file system with a directory of many files, whose names nobody holds.
type crowded struct {
	env.FS
	dir    string
	names  int
	reads  int
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
	c.reads++
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

// fill returns a directory /b with so many files below a directory.
func fill(t *testing.T, names int) *crowded {
	t.Helper()
	c := &crowded{FS: mem(t), dir: "/b/log/0000000000000007", names: names}
	file, err := c.FS.Create("/b/file")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Close(), c.FS.MkdirAll(c.dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	return c
}

// Ensure that a directory is not read for each page where there is memory for the names of some: that would take half an hour for
// a million objects. Names that were read are forgotten when a list begins anew, and after a minute.
func TestStore_List_rest(t *testing.T) {
	c, now := fill(t, 5000), time.Unix(1e9, 0)
	s, err := directory.Open(c, "/b", directory.Options{Unique: rand.Text, Now: func() time.Time { return now }, ListBytes: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	page := func(after string) (last string) {
		t.Helper()
		found, _, err := s.List(t.Context(), "log/", after, 250)
		if err != nil || len(found) != 250 || s.Held() > 2<<20 {
			t.Fatalf("after %q: %d objects, %d bytes are held, %v", after, len(found), s.Held(), err)
		}
		return found[249].Name
	}
	at, reads := "", 0
	for i := range 20 {
		if at = page(at); i%8 == 7 { // 2000 objects, of 4096 places, in each part
			reads++
		}
	}
	if c.reads > reads+1 || s.Held() != 0 {
		t.Errorf("20 pages read the directory %d times, and %d bytes are held at the end", c.reads, s.Held())
	}
	c.reads = 0
	at = page("")
	if page(at); c.reads != 1 {
		t.Errorf("two pages: %d times", c.reads)
	}
	page(at)
	if at = page(""); c.reads != 3 {
		t.Errorf("a page again, and the beginning again: %d times", c.reads)
	}
	now = now.Add(time.Hour)
	if page(at); c.reads != 4 {
		t.Errorf("after an hour: %d times", c.reads)
	}
}

// Ensure that what a list of a directory holds does not depend on how many files others put there: the share of memory of the
// operations on a place bounds it. A page has all it should, also of names in no order.
func TestStore_List_many(t *testing.T) {
	c := fill(t, 60_000)
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
		rng, dir := mathrand.New(mathrand.NewSource(seed)), t.TempDir()
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
		for _, limit := range []int{1, 2, 3, 7, 1000} {
			s, err := directory.Open(files.Disk, dir, directory.Options{Unique: rand.Text, Now: time.Now, ListBytes: rng.Int63n(2) * 20 * 512})
			if err != nil {
				t.Fatal(err)
			}
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
