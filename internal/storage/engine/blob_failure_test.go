package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// Ensure that a flush fails with an error of the disk, or that the engine says that it cannot go on, whichever write, sync or close
// of a file of values fails: Pebble panics in a goroutine of its own where it cannot finish one.
func TestEngine_Flush_anyWriteOfValuesFails(t *testing.T) {
	for nth := int64(1); ; nth++ {
		if seen := flushWithFailure(t, nth); seen < nth {
			if nth < 3 {
				t.Errorf("the flush changed files of values %d times: it made none", seen)
			}
			return
		}
	}
}

// flushWithFailure flushes large values while the nth change of files of values fails, and all after it. It returns how many there
// were.
func flushWithFailure(t *testing.T, nth int64) int64 {
	var changes atomic.Int64
	fs := filestest.Wrap(filestest.NewMem(), filestest.InjectorFunc(func(op filestest.Op) error {
		if op.Kind.ReadOrWrite() == filestest.OpIsWrite && strings.HasSuffix(op.Path, ".blob") && op.Kind != filestest.OpCreate &&
			changes.Add(1) >= nth {
			return &errnoError{syscall.EIO}
		}
		return nil
	}))
	fatal := make(chan error, 8)
	e, err := engine.Open(engine.Options{FS: fs, Dir: "/s", OnFatal: func(err error) {
		fatal <- err
		select {} // as in a process that has ended
	}})
	if err != nil {
		t.Fatal(err)
	}
	batch := e.NewBatch()
	defer batch.Close()
	for i := range 20 {
		batch.Set(fmt.Appendf(nil, "k%02d", i), make([]byte, 20_000))
	}
	if err := batch.Commit(); err != nil {
		t.Fatal(err)
	}
	flushed := make(chan error, 1)
	go func() { flushed <- e.Flush() }()
	select {
	case err = <-flushed:
	case err = <-fatal:
	}
	if failed := changes.Load() >= nth; failed != (err != nil) || failed && !errors.Is(err, syscall.EIO) {
		t.Errorf("change %d of %d: got %v", nth, changes.Load(), err)
	}
	return changes.Load()
}
