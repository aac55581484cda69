package engine_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// Ensure that a checkpoint fails with an error of the disk, whichever write, sync or rename in its directory fails, and that
// the store goes on: Pebble panics where it cannot sync the directory of a marker.
func TestEngine_Checkpoint_anyWriteFails(t *testing.T) {
	for nth := int64(1); ; nth++ {
		var changes atomic.Int64
		fs := filestest.Wrap(filestest.NewMem(), filestest.InjectorFunc(func(op filestest.Op) error {
			if op.Kind.ReadOrWrite() == filestest.OpIsWrite && strings.HasPrefix(op.Path, "/copy") && changes.Add(1) == nth {
				return &errnoError{syscall.EIO}
			}
			return nil
		}))
		e, err := engine.Open(engine.Options{FS: fs, Dir: "/s", OnFatal: func(err error) {
			t.Errorf("change %d: the store cannot go on: %v", nth, err)
		}})
		if err != nil {
			t.Fatal(err)
		}
		failed := e.Checkpoint("/copy")
		if again := e.Checkpoint("/next"); again != nil {
			t.Errorf("change %d: the next checkpoint: %v", nth, again)
		}
		if err := e.Close(); err != nil {
			t.Errorf("change %d: %v", nth, err)
		}
		if changes.Load() < nth {
			return
		}
		if failed != nil && !errors.Is(failed, syscall.EIO) {
			t.Errorf("change %d: got %v, want %v", nth, failed, syscall.EIO)
		}
	}
}
