package directory_test

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/directory"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

func options() directory.Options {
	return directory.Options{Unique: rand.Text, Now: time.Now}
}

func open(t *testing.T, fs env.FS, root string) *directory.Store {
	t.Helper()
	s, err := directory.Open(fs, root, options())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mem(t *testing.T) *filestest.MemFS {
	t.Helper()
	fs := filestest.NewMem()
	if err := fs.MkdirAll("/b", 0o700); err != nil {
		t.Fatal(err)
	}
	return fs
}

// noLinks is a file system without links, as some of the network are.
type noLinks struct{ env.FS }

// Link implements env.FS.
func (noLinks) Link(oldname, newname string) error {
	return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: syscall.EPERM}
}

// Ensure that a directory is a place like others: on the machine's disk, on the simulated one, and where there are no links.
func TestStore(t *testing.T) {
	for name, place := range map[string]func(*testing.T) (env.FS, string){
		"disk":     func(t *testing.T) (env.FS, string) { return files.Disk, t.TempDir() },
		"memory":   func(t *testing.T) (env.FS, string) { return mem(t), "/b" },
		"no links": func(t *testing.T) (env.FS, string) { return noLinks{mem(t)}, "/b" },
	} {
		t.Run(name, func(t *testing.T) {
			objectstest.Run(t, func(t *testing.T) objects.Store {
				fs, root := place(t)
				o := options()
				o.ListBytes = 1 << 20
				s, err := directory.Open(fs, root, o)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}, objectstest.Options{Large: 1 << 20, Overwrites: name == "no links"})
		})
	}
}

// Ensure that a directory that is not there, a file, and a data directory are refused, with the reason.
func TestOpen_refuses(t *testing.T) {
	fs := mem(t)
	for _, dir := range []string{"/ours/member/wal", "/theirs/member/snap", "/half/member.partial",
		"/ours/member/deep/er", "/fine/objects"} {
		if err := fs.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"/file", "/ours/member/boots"} {
		f, err := fs.Create(file)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for root, want := range map[string]string{"/absent": "not there", "/file": "no directory", "/ours": "data directory",
		"/theirs": "data directory", "/half": "data directory", "/ours/member": "data directory",
		"/ours/member/wal": "data directory", "/ours/member/deep/er": "/ours"} {
		if _, err := directory.Open(fs, root, options()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a word of %q", root, err, want)
		}
	}
	open(t, fs, "/fine/objects")
}

// Ensure that nothing is written where a directory was, which may be where a disk was mounted.
func TestStore_rootGone(t *testing.T) {
	fs := mem(t)
	s := open(t, fs, "/b")
	if err := fs.RemoveAll("/b"); err != nil {
		t.Fatal(err)
	}
	_, statErr := s.Stat(t.Context(), "o")
	_, _, listErr := s.List(t.Context(), "", "", 1)
	putErr := s.Put(t.Context(), "o", strings.NewReader("x"), 1)
	for what, err := range map[string]error{"put": putErr, "stat": statErr, "list": listErr, "delete": s.Delete(t.Context(),
		"o")} {
		if !errors.Is(err, objects.ErrNoPlace) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := fs.Stat("/b"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the root was made: %v", err)
	}
}

// Ensure that errors of a disk have the kinds that callers tell apart, and leave neither an object nor a temporary file.
func TestStore_faultsOfTheDisk(t *testing.T) {
	for is, want := range map[syscall.Errno]error{syscall.ENOSPC: objects.ErrFull, syscall.EDQUOT: objects.ErrFull,
		syscall.EACCES: objects.ErrUser, syscall.EROFS: objects.ErrReadOnly, syscall.ESTALE: objects.ErrBusy} {
		for _, kind := range []any{filestest.OpFileWrite, filestest.OpFileSync, filestest.OpCreate} {
			inner, failed := mem(t), false
			s := open(t, filestest.Wrap(inner, func(op filestest.Op) error {
				if op.Kind == kind {
					failed = true
					return is
				}
				return nil
			}), "/b")
			err := s.Put(t.Context(), "obj/a", strings.NewReader("x"), 1)
			if !failed || !errors.Is(err, want) {
				t.Errorf("%v at %v: %v", is, kind, err)
			}
			if names, err := inner.List("/b/.tmp"); len(names) > 0 {
				t.Errorf("%v at %v left %q: %v", is, kind, names, err)
			}
			if _, err := s.Stat(t.Context(), "obj/a"); !errors.Is(err, objects.ErrNotFound) {
				t.Errorf("%v at %v: %v", is, kind, err)
			}
		}
	}
}

// Ensure that files of writers that died go away when they are old, and no others.
func TestStore_sweeps(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	old, young := rand.Text(), rand.Text()
	stays := map[string]bool{old: false, young: true, "000001.log": true, "0" + old[1:]: true, old + "A": true}
	for name := range stays {
		at := filepath.Join(dir, ".tmp", name)
		if err := os.WriteFile(at, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if name != young {
			if err := os.Chtimes(at, time.Time{}, time.Now().Add(-25*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := open(t, files.Disk, dir)
	if err := s.Put(t.Context(), "o", strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	for name, want := range stays {
		if _, err := os.Stat(filepath.Join(dir, ".tmp", name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Ensure that an operator is told of a directory that others may write.
func TestStore_Warnings(t *testing.T) {
	for mode, want := range map[os.FileMode]int{0o700: 0, 0o755: 0, 0o777: 1, 0o770: 1} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if got := open(t, files.Disk, dir).Warnings(); len(got) != want {
			t.Errorf("mode %o: %q", mode, got)
		}
	}
}

// Ensure that links and other files that somebody put there are no objects.
func TestStore_foreignFiles(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "README.TXT"), []byte("x"), 0o600),
		os.Mkdir(filepath.Join(dir, "lost+found"), 0o700), os.Symlink("/etc/passwd", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	s := open(t, files.Disk, dir)
	if body, err := s.Get(t.Context(), "link", 0, -1); !errors.Is(err, objects.ErrForeign) {
		t.Errorf("a link was opened: %v, %v", body, err)
	}
	if found, _, err := s.List(t.Context(), "", "", 10); err != nil || len(found) != 1 || found[0].Name != "link" {
		t.Errorf("listed %v, %v", found, err) // it is named, and cannot be read
	}
}
