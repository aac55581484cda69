package engine_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// Ensure that a store that is only looked at stays as it is, and that looking makes none.
func TestOpen_readOnly(t *testing.T) {
	fs := filestest.NewMem()
	open := func(readOnly bool) (engine.Engine, error) {
		return engine.Open(engine.Options{FS: fs, Dir: "/s", ReadOnly: readOnly})
	}
	if _, err := open(true); err == nil {
		t.Fatal("a store that is not there was opened")
	}
	e, err := open(false)
	if err != nil {
		t.Fatal(err)
	}
	batch := e.NewBatch()
	batch.Set([]byte("\x01key"), []byte("value"))
	if err := errors.Join(batch.Commit(), batch.Close(), e.Flush(), e.Close()); err != nil {
		t.Fatal(err)
	}
	before := filesIn(t, fs)
	if e, err = open(true); err != nil {
		t.Fatal(err)
	}
	if value, found, err := e.Get([]byte("\x01key")); err != nil || !found || string(value) != "value" {
		t.Errorf("got %q, %v, %v", value, found, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if after := filesIn(t, fs); after != before {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
}

// filesIn lists a store by name and size.
func filesIn(t *testing.T, fs env.FS) (all string) {
	t.Helper()
	names := find(t, fs, "")
	slices.Sort(names)
	for _, name := range names {
		stat, err := fs.Stat(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		all += fmt.Sprintln(name, stat.Size())
	}
	return all
}
