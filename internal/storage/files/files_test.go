package files_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// Ensure that Pebble gets its own file system and files, with all that they can do.
func TestToPebble_itsOwn(t *testing.T) {
	if got := files.ToPebble(files.Disk); got.Unwrap() != vfs.Default {
		t.Errorf("got %T for the machine's disk", got)
	}
	own := disk.New()
	if got := files.FromPebble(files.ToPebble(own)); got != env.FS(own) {
		t.Errorf("got %T for a disk of ours", got)
	}
	type wrapper struct{ env.FS }
	f, err := files.ToPebble(wrapper{files.Disk}).Create(filepath.Join(t.TempDir(), "f"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Fd() == vfs.InvalidFd {
		t.Error("a file of the machine's disk has no descriptor")
	}
}

// Ensure that each file system does what env.FS says of names, of content and of errors.
func TestFS(t *testing.T) {
	onDisk := t.TempDir()
	for _, c := range []struct {
		name, dir string
		fs        env.FS
	}{
		{"disk", onDisk, files.Disk},
		{"memory", "/d", filestest.NewMem()},
		{"simulated", "/d", disk.New()},
		{"for Pebble and back", "/d", filestest.Wrap(disk.New(), func(filestest.Op) error { return nil })},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkFS(t, c.fs, c.dir)
			lock, err := c.fs.Lock(c.fs.PathJoin(c.dir, "LOCK"))
			if err != nil {
				t.Fatal(err)
			}
			if err := lock.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func checkFS(t *testing.T, fs env.FS, dir string) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	a, b := fs.PathJoin(dir, "x", "a"), fs.PathJoin(dir, "x", "b")
	check(fs.MkdirAll(fs.PathDir(a), 0o755))
	if _, err := fs.Open(a); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("open a file that is missing: %v", err)
	}
	f, err := fs.OpenReadWrite(a)
	check(err)
	_, err = f.WriteAt([]byte("def"), 3)
	check(err)
	_, err = f.WriteAt([]byte("abc"), 0)
	check(errors.Join(err, f.SyncData(), f.Sync()))
	if err := f.Preallocate(0, 1<<12); err != nil && !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENOSYS) {
		t.Error(err)
	}
	info, err := f.Stat()
	check(err)
	byName, err := fs.Stat(a)
	check(errors.Join(err, f.Close()))
	if info.Size() != 6 || byName.Size() != 6 || byName.Name() != fs.PathBase(a) || byName.IsDir() {
		t.Errorf("the file has %d and %d bytes, and is called %s", info.Size(), byName.Size(), byName.Name())
	}
	check(fs.Link(a, b))
	if err := fs.Link(a, b); !errors.Is(err, os.ErrExist) {
		t.Errorf("link over a file: %v", err)
	}
	f, err = fs.Create(a)
	check(err)
	_, err = f.Write([]byte("new"))
	check(errors.Join(err, f.Close()))
	for path, want := range map[string]string{a: "new", b: "abcdef"} {
		for _, open := range []func(string) (env.File, error){fs.Open, fs.OpenSequential} {
			f, err := open(path)
			check(err)
			if got, err := io.ReadAll(f); string(got) != want || err != nil {
				t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
			}
			if n, err := f.ReadAt(make([]byte, 4), 2); n != min(4, len(want)-2) || n < 4 && err != io.EOF { //nolint:errorlint // as io.ReaderAt
				t.Errorf("read at 2: %d, %v", n, err)
			}
			check(f.Close())
		}
	}
	check(fs.Rename(a, b))
	names, err := fs.List(fs.PathDir(a))
	check(err)
	if len(names) != 1 || names[0] != "b" {
		t.Errorf("after a rename the directory has %q", names)
	}
	d, err := fs.OpenDir(fs.PathDir(a))
	check(errors.Join(err, d.Sync(), d.Close()))
	if usage, err := fs.DiskUsage(dir); err != nil && !errors.Is(err, env.ErrNoDiskUsage) || err == nil && usage.TotalBytes == 0 {
		t.Errorf("usage: %+v, %v", usage, err)
	}
	check(errors.Join(fs.Remove(b), fs.RemoveAll(fs.PathDir(a)), fs.RemoveAll(a)))
	if _, err := fs.Stat(fs.PathDir(a)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat a directory that was removed: %v", err)
	}
}

// foreign is a file system whose files are no files of Pebble.
type foreign struct{ env.FS }

type foreignFile struct{ env.File }

func isForeign(f env.File, err error) (env.File, error) {
	if err != nil {
		return nil, err
	}
	return foreignFile{f}, nil
}

func (f foreign) Create(name string) (env.File, error) { return isForeign(f.FS.Create(name)) }

func (f foreign) Open(name string) (env.File, error) { return isForeign(f.FS.Open(name)) }

func (f foreign) OpenReadWrite(name string) (env.File, error) {
	return isForeign(f.FS.OpenReadWrite(name))
}

func (f foreign) OpenDir(name string) (env.File, error) { return isForeign(f.FS.OpenDir(name)) }

// Ensure that Pebble runs, and makes a checkpoint, on a file system that knows nothing of it.
func TestToPebble_store(t *testing.T) {
	fs := files.ToPebble(foreign{filestest.NewMem()})
	db, err := pebble.Open("/s", &pebble.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set([]byte("k"), []byte("v"), pebble.Sync), db.Flush(), db.Checkpoint("/c"), db.Close()); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/s", "/c"} {
		db, err := pebble.Open(dir, &pebble.Options{FS: fs, ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		value, closer, err := db.Get([]byte("k"))
		if err != nil || string(value) != "v" {
			t.Errorf("%s: got %q, %v", dir, value, err)
		}
		if err := errors.Join(closer.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

// Ensure that an append to a log costs no allocation for the translation.
func TestDisk_allocations(t *testing.T) {
	f, err := files.Disk.OpenReadWrite(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 512)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := f.WriteAt(page, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.SyncData(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a write and a sync allocate %v times", n)
	}
}
