package engine_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// Ensure that Open fails with an error of the disk, or says that the engine cannot go on, whichever write, sync or rename
// fails: Pebble panics where it cannot sync the directory of a marker.
func TestOpen_anyWriteFails(t *testing.T) {
	for _, existed := range []bool{false, true} {
		for nth := 1; ; nth++ {
			disk := filestest.NewMem()
			if existed {
				e, err := engine.Open(engine.Options{FS: disk, Dir: "/s"})
				if err == nil {
					err = e.Close()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if openWithFailure(t, disk, nth) {
				break
			}
		}
	}
}

// openWithFailure opens a store while the nth change of the disk fails. It reports whether there were fewer.
func openWithFailure(t *testing.T, disk env.FS, nth int) (fewer bool) {
	changes := make(chan int, 1)
	changes <- 0
	fs := filestest.Wrap(disk, filestest.InjectorFunc(func(op filestest.Op) error {
		if op.Kind.ReadOrWrite() != filestest.OpIsWrite {
			return nil
		}
		n := <-changes + 1
		changes <- n
		if n == nth {
			return &errnoError{syscall.EIO}
		}
		return nil
	}))
	opened := make(chan error, 1)
	fatal := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("change %d: Open panics: %v", nth, r)
				opened <- nil
			}
		}()
		e, err := engine.Open(engine.Options{FS: fs, Dir: "/s", OnFatal: func(err error) {
			fatal <- err
			select {} // as in a process that has ended
		}})
		if err == nil {
			err = e.Close()
		}
		opened <- err
	}()
	var err error
	select {
	case err = <-opened:
	case err = <-fatal:
	}
	if err != nil && !errors.Is(err, syscall.EIO) {
		t.Errorf("change %d: got %v, want %v", nth, err, syscall.EIO)
	}
	n := <-changes
	return n < nth
}
