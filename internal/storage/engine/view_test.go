package engine_test

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// Ensure that a view opens and reads on a disk that takes no write, and that one that does not open is an error and no
// panic: it is no member's only copy.
func TestOpenView_fullDisk(t *testing.T) {
	mem := filestest.NewMem()
	var full atomic.Bool
	fs := filestest.Wrap(mem, filestest.InjectorFunc(func(op filestest.Op) error {
		switch op.Kind {
		case filestest.OpFileWrite, filestest.OpFileSync, filestest.OpFileSyncData, filestest.OpFilePreallocate:
			if full.Load() {
				return syscall.ENOSPC
			}
		}
		return nil
	}))
	e, err := engine.Open(engine.Options{FS: fs, Dir: "store"})
	if err != nil {
		t.Fatal(err)
	}
	batch := e.NewBatch()
	for i := range 1000 {
		batch.Set(fmt.Appendf(nil, "s%d", i), make([]byte, 100))
	}
	if err := errors.Join(batch.Commit(), batch.Close(), e.Checkpoint("view"), e.Close()); err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	view, err := engine.OpenView(fs, "view", 1<<20, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if value, found, err := view.Get([]byte("s7")); err != nil || !found || len(value) != 100 {
		t.Errorf("got %d bytes, %v, %v", len(value), found, err)
	}
	if err := view.Close(); err != nil {
		t.Error(err)
	}
	if err := view.Close(); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := engine.OpenView(fs, "none", 1<<20, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a view of nothing opens")
	}
}
