package directory_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/directory"
)

// elsewhere makes a directory of somebody else, with files of long ago, and links each name in a place to it.
func elsewhere(t *testing.T, place string, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "c1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"000001.log", rand.Text(), "aa", "c1/aa"} {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(at, []byte("theirs"), 0o600),
			os.Chtimes(at, time.Time{}, time.Now().Add(-48*time.Hour))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		if err := os.Symlink(dir, filepath.Join(place, name)); err != nil {
			t.Skip(err) // a system on which only administrators make links
		}
	}
	return dir
}

// untouched wants what elsewhere made, and nothing else.
func untouched(t *testing.T, when, dir string) {
	t.Helper()
	top, err := os.ReadDir(dir)
	below, errBelow := os.ReadDir(filepath.Join(dir, "c1"))
	if err != nil || errBelow != nil || len(top) != 4 || len(below) != 1 {
		t.Errorf("%s: behind the link are %v and %v", when, top, below)
	}
}

// refused wants an ErrLink that names the link.
func refused(t *testing.T, when string, err error, link string) {
	t.Helper()
	if !errors.Is(err, objects.ErrLink) || !strings.Contains(err.Error(), link+": it is a symbolic link") {
		t.Errorf("%s: %v, want a sentence about %s", when, err, link)
	}
}

// useAll does all operations on names below a top, each of which must name the link.
func useAll(t *testing.T, s *directory.Store, top, link string) {
	t.Helper()
	for _, name := range []string{top + "/aa", top + "/zz", top + "/c1/aa", top + "/c1/zz"} {
		refused(t, "put "+name, s.Put(t.Context(), name, strings.NewReader("x"), 1), link)
		_, err := s.Stat(t.Context(), name)
		refused(t, "stat "+name, err, link)
		_, err = s.Get(t.Context(), name, 0, -1)
		refused(t, "get "+name, err, link)
		refused(t, "delete "+name, s.Delete(t.Context(), name), link)
	}
	for _, prefix := range []string{"", top, top + "/", top + "/c1/"} {
		_, _, err := s.List(t.Context(), prefix, "", 10)
		refused(t, "list "+prefix, err, link)
	}
}

// Ensure that links that somebody put in the place of its directories lead nothing elsewhere: neither the removal of old files,
// nor any other operation, of a store that knew the directory, too.
func TestStore_links(t *testing.T) {
	for _, top := range []string{"obj", "base", "log"} {
		place := t.TempDir()
		dir, s := elsewhere(t, place, top), open(t, files.Disk, place)
		useAll(t, s, top, filepath.Join(place, top))
		untouched(t, top, dir)
	}
	place := t.TempDir()
	dir, link, s := elsewhere(t, place, ".tmp"), filepath.Join(place, ".tmp"), open(t, files.Disk, place)
	refused(t, "put", s.Put(t.Context(), "obj/aa", strings.NewReader("x"), 1), link)
	untouched(t, ".tmp", dir)
	if err := errors.Join(os.Remove(link), s.Put(t.Context(), "obj/c1/aa", strings.NewReader("x"), 1)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(place, "obj")); err != nil {
		t.Fatal(err)
	}
	dir = elsewhere(t, place, "obj")
	useAll(t, s, "obj", filepath.Join(place, "obj"))
	untouched(t, "swapped", dir)
}

// Ensure that a link within a place is refused as well.
func TestStore_linksWithin(t *testing.T) {
	place := t.TempDir()
	s := open(t, files.Disk, place)
	if err := s.Put(t.Context(), "base/aa", strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("base", filepath.Join(place, "obj")); err != nil {
		t.Skip(err)
	}
	_, err := s.Stat(t.Context(), "obj/aa")
	refused(t, "stat", err, filepath.Join(place, "obj"))
}

// swapping is a body that swaps a directory for a link when it is read.
type swapping struct {
	*strings.Reader
	swap func()
}

func (s swapping) Read(p []byte) (int, error) {
	s.swap()
	return s.Reader.Read(p)
}

// Ensure that one who swaps a directory for a link after it was looked at leads nothing elsewhere: neither the temporary file,
// which would replace another one there, nor the name of the object.
func TestStore_swapped(t *testing.T) {
	place := t.TempDir()
	dir, top := elsewhere(t, place), ""
	swap := func() {
		if top == "" {
			return
		}
		at := filepath.Join(place, top)
		if err := errors.Join(os.Rename(at, at+"-own"), os.Symlink(dir, at)); err != nil {
			t.Error(err)
		}
		top = ""
	}
	s, err := directory.Open(files.Disk, place, directory.Options{Unique: func() string {
		swap()
		return "aa" // as a file elsewhere
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "obj/c1/bb", strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	top = ".tmp"
	if err := s.Put(t.Context(), "obj/c1/cc", strings.NewReader("x"), 1); err == nil {
		t.Error("it was put over a link")
	}
	untouched(t, "temporary files", dir)
	if err := errors.Join(os.Remove(filepath.Join(place, ".tmp")), os.Rename(filepath.Join(place, ".tmp-own"),
		filepath.Join(place, ".tmp"))); err != nil {
		t.Fatal(err)
	}
	body := swapping{strings.NewReader("x"), func() {
		if top == "" {
			top = "obj"
			swap()
		}
	}}
	if err := s.Put(t.Context(), "obj/c1/dd", body, 1); err == nil {
		t.Error("it was named behind a link")
	}
	untouched(t, "names", dir)
	if content, err := os.ReadFile(filepath.Join(dir, "aa")); err != nil || string(content) != "theirs" {
		t.Errorf("theirs is %q, %v", content, err)
	}
}

// Ensure that a link that leads in circles is refused by its name, wherever it lies: what else there is would not be listed.
func TestStore_circle(t *testing.T) {
	place := t.TempDir()
	s := open(t, files.Disk, place)
	if err := s.Put(t.Context(), "base/aa", strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(place, "base", "bb")
	if err := os.Symlink("bb", link); err != nil {
		t.Skip(err)
	}
	found, _, err := s.List(t.Context(), "base/", "", 10)
	refused(t, fmt.Sprint("list ", found), err, link)
}
