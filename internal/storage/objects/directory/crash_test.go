package directory_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/objects"
)

// contents are what the tests write: two sectors and more, so that a torn write shows.
var contents = map[string]string{
	"obj/aa": strings.Repeat("a", 1500), "obj/bb": strings.Repeat("b", 700),
	"log/c1/1-2.ql": strings.Repeat("c", 600), "top": "",
}

var order = []string{"obj/aa", "log/c1/1-2.ql", "obj/bb", "top"}

func emptyDisk(t *testing.T) *disk.FS {
	t.Helper()
	fs := disk.New()
	if err := fs.MkdirAll("/b", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.SyncDir(fs, "/"); err != nil {
		t.Fatal(err)
	}
	return fs
}

// write puts all contents, and returns the names whose Put said that the object is there.
func write(t *testing.T, fs *disk.FS) (told []string) {
	t.Helper()
	s := open(t, fs, "/b")
	for _, name := range order {
		err := objects.PutOnce(context.Background(), s, name, strings.NewReader(contents[name]), int64(len(contents[name])))
		if err == nil {
			told = append(told, name)
		} else if !errors.Is(err, disk.ErrDead) {
			t.Errorf("put %s: %v", name, err)
		}
	}
	return told
}

// check wants the told objects there, and all that are there whole.
func check(t *testing.T, fs *disk.FS, told []string, when string) {
	t.Helper()
	s := open(t, fs, "/b")
	for _, name := range told {
		if _, err := s.Stat(context.Background(), name); err != nil {
			t.Errorf("%s: an acknowledged object: %v", when, err)
		}
	}
	found, _, err := s.List(context.Background(), "", "", objects.MaxList)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range found {
		body, err := s.Get(context.Background(), info.Name, 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(body)
		if err := errors.Join(err, body.Close()); err != nil || string(content) != contents[info.Name] {
			t.Errorf("%s: %s has %d bytes, others than were written: %v", when, info.Name, len(content), err)
		}
	}
}

// Ensure that an acknowledged object survives a power loss before each operation on the disk, and that none is there in part.
func TestStore_powerLoss(t *testing.T) {
	deaths := 0
	for after := 0; ; after++ {
		alive := false
		for _, mode := range []disk.Mode{disk.LoseAll, disk.KeepAll, disk.Torn} {
			for seed := range uint64(3) {
				fs := emptyDisk(t)
				fs.DieAfter(after)
				told := write(t, fs)
				alive = alive || !fs.Dead()
				check(t, fs.Crash(mode, rand.New(rand.NewPCG(seed, uint64(after)))), told, "after a power loss")
			}
		}
		if alive {
			break
		}
		deaths++
	}
	if deaths < 20 {
		t.Errorf("the test knows %d moments of a power loss only", deaths)
	}
}

// Ensure that an object that an earlier process named, and did not live to make durable, is durable once Put has found it.
func TestStore_Put_foundIsDurable(t *testing.T) {
	fs := filestest.NewCrashableMem()
	if err := errors.Join(fs.MkdirAll("/b/obj", 0o700), durable.SyncDir(fs, "/"), durable.SyncDir(fs, "/b")); err != nil {
		t.Fatal(err)
	}
	put := func(fs env.FS) error {
		return open(t, fs, "/b").Put(context.Background(), "obj/a", strings.NewReader("x"), 1)
	}
	dies := errors.New("the process dies")
	if err := put(filestest.Wrap(fs, func(op filestest.Op) error {
		if op.Kind == filestest.OpOpenDir && op.Path == "/b/obj" {
			return dies
		}
		return nil
	})); !errors.Is(err, dies) {
		t.Fatal(err)
	}
	lost := func(fs *filestest.MemFS) bool {
		_, err := fs.CrashClone(filestest.CrashCloneCfg{}).Stat("/b/obj/a")
		return err != nil
	}
	if !lost(fs) {
		t.Fatal("the name was durable already: the test shows nothing")
	}
	if err := put(fs); !errors.Is(err, objects.ErrExists) {
		t.Fatal(err)
	}
	if lost(fs) {
		t.Error("a power loss took an object of which Put had said that it is there")
	}
}
