package engine_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

func overwrite(t *testing.T, fs env.FS, name string, change func([]byte) []byte) {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	out, err := fs.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = out.Write(change(content))
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}

func find(t *testing.T, fs env.FS, part string) (found []string) {
	t.Helper()
	names, err := fs.List("/s")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.Contains(name, part) {
			found = append(found, fs.PathJoin("/s", name))
		}
	}
	if len(found) == 0 {
		t.Fatalf("no file like %s in %v", part, names)
	}
	return found
}

func TestOpen_refuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, fs env.FS)
		want  error
		says  string
	}{
		{"a manifest that is cut", func(t *testing.T, fs env.FS) {
			for _, name := range find(t, fs, "MANIFEST-") {
				if !strings.Contains(name, "marker") {
					overwrite(t, fs, name, func(b []byte) []byte { return b[:3] })
				}
			}
		}, engine.ErrCorrupt, "replace this member"},
		{"a table that is gone", func(t *testing.T, fs env.FS) {
			if err := fs.Remove(find(t, fs, ".sst")[0]); err != nil {
				t.Fatal(err)
			}
		}, engine.ErrCorrupt, "replace this member"},
		{"a file of values that is gone", func(t *testing.T, fs env.FS) {
			if err := fs.Remove(find(t, fs, ".blob")[0]); err != nil {
				t.Fatal(err)
			}
		}, engine.ErrCorrupt, "replace this member"},
		{"a newer format of the tables", func(t *testing.T, fs env.FS) {
			from := find(t, fs, "marker.format-version")[0]
			if err := fs.Rename(from, "/s/marker.format-version.000999.999"); err != nil {
				t.Fatal(err)
			}
		}, engine.ErrNewer, "start the version that wrote it"},
		{"a newer format of ours", func(t *testing.T, fs env.FS) {
			e := openOnly(t, "pebble", fs, nil)
			b := e.NewBatch()
			b.Set([]byte("\x00quorate/format"), []byte("3"))
			if err := errors.Join(b.Commit(), e.Flush(), e.Close()); err != nil {
				t.Fatal(err)
			}
		}, engine.ErrNewer, "start the version that wrote it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := filestest.NewMem()
			e := openOnly(t, "pebble", fs, nil)
			set(t, e, 1, 5000)
			if err := errors.Join(e.Flush(), e.Close()); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, fs)
			e, err := engine.Open(engine.Options{FS: fs, Dir: "/s"})
			if err == nil {
				t.Fatal(errors.Join(errors.New("the store opens"), e.Close()))
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want %q in one line that says %q", err, c.want, c.says)
			}
		})
	}
}

// A new store bears format 1, and one of another format is refused, for reading only, too, with what to do.
func TestOpen_marks(t *testing.T) {
	mark := []byte("\x00quorate/format")
	fs := filestest.NewMem()
	for _, format := range []string{"1", "2"} {
		e := openOnly(t, "pebble", fs, nil)
		if got, _, err := e.Get(mark); err != nil || string(got) != "1" {
			t.Errorf("the mark is %q, %v", got, err)
		}
		b := e.NewBatch()
		b.Set(mark, []byte(format))
		if err := errors.Join(b.Commit(), b.Close(), e.Flush(), e.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for _, readOnly := range []bool{true, false} {
		_, err := engine.Open(engine.Options{FS: fs, Dir: "/s", ReadOnly: readOnly})
		if !errors.Is(err, engine.ErrNewer) || !strings.Contains(err.Error(), "start the version that wrote it") {
			t.Errorf("read-only %v: %v", readOnly, err)
		}
	}
}

func TestOpen_refuses_foreignStore(t *testing.T) {
	fs := filestest.NewMem()
	db, err := pebble.Open("/s", &pebble.Options{FS: files.ToPebble(fs)})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set([]byte("k"), nil, pebble.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Open(engine.Options{FS: fs, Dir: "/s"}); !errors.Is(err, engine.ErrNewer) {
		t.Errorf("got %v, want %v", err, engine.ErrNewer)
	}
}

func TestOpen_refuses_secondProcess(t *testing.T) {
	dir := t.TempDir()
	e, err := engine.Open(engine.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Open(engine.Options{Dir: dir}); !errors.Is(err, engine.ErrLocked) {
		t.Errorf("got %v, want %v", err, engine.ErrLocked)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenMem_refuses_everyFlippedByte(t *testing.T) {
	fs := filestest.NewMem()
	e := openOnly(t, "mem", fs, nil)
	set(t, e, 1, 20)
	if err := errors.Join(e.Flush(), e.Close()); err != nil {
		t.Fatal(err)
	}
	size := 0
	overwrite(t, fs, "/s/STATE", func(b []byte) []byte { size = len(b); return b })
	for i := range size {
		flip := func(b []byte) []byte { b[i] ^= 0x40; return b }
		overwrite(t, fs, "/s/STATE", flip)
		if _, err := engine.OpenMem(engine.MemOptions{FS: fs, Dir: "/s"}); !errors.Is(err, engine.ErrCorrupt) {
			t.Errorf("byte %d: got %v, want %v", i, err, engine.ErrCorrupt)
		}
		overwrite(t, fs, "/s/STATE", flip)
	}
}

// A full disk is an error of the next flush and of every commit after it; nothing hangs and nothing dies.
func TestEngine_Commit_fullDisk(t *testing.T) {
	var full atomic.Bool
	fs := filestest.Wrap(filestest.NewMem(), filestest.InjectorFunc(func(op filestest.Op) error {
		if full.Load() && op.Kind == filestest.OpFileWrite && strings.HasSuffix(op.Path, ".sst") {
			return &errnoError{syscall.ENOSPC}
		}
		return nil
	}))
	var log bytes.Buffer
	e, err := engine.Open(engine.Options{FS: fs, Dir: "/s", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	set(t, e, 1, 100)
	full.Store(true)
	err = e.Flush()
	if !errors.Is(err, engine.ErrNoSpace) || !strings.Contains(err.Error(), "free space on the disk of /s") {
		t.Errorf("flush: got %v, want %v", err, engine.ErrNoSpace)
	}
	b := e.NewBatch()
	b.Set([]byte("z"), nil)
	if err := b.Commit(); !errors.Is(err, engine.ErrNoSpace) {
		t.Errorf("commit: got %v, want %v", err, engine.ErrNoSpace)
	}
	if got := number(t, e.Get); got != 1 {
		t.Errorf("reads go on: got %d, want 1", got)
	}
	full.Store(false)
	if err := errors.Join(b.Close(), e.Close()); err != nil {
		t.Error(err)
	}
}

// errnoError is how the os package wraps an errno.
type errnoError struct{ errno syscall.Errno }

func (e *errnoError) Error() string { return "write: " + e.errno.Error() }
func (e *errnoError) Unwrap() error { return e.errno }
