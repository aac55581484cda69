package stores

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/storage/engine"
)

// maxCall bounds, in real time, a call of an engine. A call that takes longer would never return.
const maxCall = time.Minute

// flushBytes of commits are followed by a flush: so few that flushes and LSM compactions happen within a run.
const flushBytes = 8 << 10

var errHangs = fmt.Errorf("sim: the engine has not answered for %v", maxCall)

// pebble is an engine whose goroutines share a disk with the simulation.
type pebble struct {
	engine.Engine
	turn  turn
	disk  *disk.FS
	fatal *fatal

	unflushed int // bytes committed since the last flush
}

// openPebble opens an engine with make. make gets the function that the engine must call when it cannot go on.
func openPebble(t turn, fs *disk.FS, make func(fatal func(error)) (engine.Engine, error)) (*pebble, error) {
	e := &pebble{turn: t, disk: fs, fatal: newFatal()}
	err := e.call(func() (err error) {
		e.Engine, err = make(e.fatal.report)
		return err
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// call runs do in a goroutine of its own, because a fatal error does not end the call. It returns once the work that do has
// left to Pebble's goroutines is done, too.
func (e *pebble) call(do func() error) error {
	if err := e.ended(); err != nil {
		return err
	}
	defer e.turn.yield()()
	done := make(chan error, 1)
	go func() {
		err := do()
		if err == nil {
			e.settle()
		}
		done <- err
	}()
	hangs := time.NewTimer(maxCall)
	defer hangs.Stop()
	select {
	case err := <-done:
		return err
	case <-e.fatal.struck:
		return e.fatal.err
	case <-hangs.C:
		return errHangs
	}
}

// ended returns the fatal error, if there was one: then Pebble's locks are held for ever.
func (e *pebble) ended() error {
	select {
	case <-e.fatal.struck:
		return e.fatal.err
	default:
		return nil
	}
}

// settle waits until the store is idle. On a disk that does not work, it waits only for flushes, which succeed or fail for
// good: LSM compactions are tried again and again.
func (e *pebble) settle() {
	for {
		now := e.Engine.(interface{ Background() engine.Background }).Background()
		if !now.Flushing && (!now.Compacting && !now.Removing || !e.works()) {
			return
		}
		runtime.Gosched()
	}
}

func (e *pebble) works() bool {
	defer e.turn.take()()
	return !e.disk.Dead() && !e.disk.Full && !e.disk.Broken
}

// Flush implements engine.Engine.
func (e *pebble) Flush() error {
	e.unflushed = 0
	return e.call(e.Engine.Flush)
}

// Checkpoint implements engine.Engine.
func (e *pebble) Checkpoint(dir string) error {
	return e.call(func() error { return e.Engine.Checkpoint(dir) })
}

// Defragment implements engine.Engine.
func (e *pebble) Defragment(ctx context.Context) error {
	return e.call(func() error { return e.Engine.Defragment(ctx) })
}

// Reclaim implements engine.Engine.
func (e *pebble) Reclaim(ctx context.Context, hurry bool) error {
	e.unflushed = 0
	return e.call(func() error { return e.Engine.Reclaim(ctx, hurry) })
}

// DiskBytes implements engine.Engine.
func (e *pebble) DiskBytes(lower, upper []byte) (uint64, error) {
	if err := e.ended(); err != nil {
		return 0, err
	}
	defer e.turn.yield()()
	return e.Engine.DiskBytes(lower, upper)
}

// Stats implements engine.Engine.
func (e *pebble) Stats() engine.Stats {
	if e.ended() != nil {
		return engine.Stats{}
	}
	defer e.turn.yield()()
	return e.Engine.Stats()
}

// Close implements engine.Engine. It does not close an engine that met a fatal error: its locks are held for ever.
func (e *pebble) Close() error {
	return e.call(e.Engine.Close)
}

// Get implements engine.Engine.
func (e *pebble) Get(key []byte) (value []byte, found bool, err error) {
	if err := e.ended(); err != nil {
		return nil, false, err
	}
	defer e.turn.yield()()
	return e.Engine.Get(key)
}

// GetDurable implements engine.Engine.
func (e *pebble) GetDurable(key []byte) (value []byte, found bool, err error) {
	if err := e.ended(); err != nil {
		return nil, false, err
	}
	defer e.turn.yield()()
	return e.Engine.GetDurable(key)
}

// NewBatch implements engine.Engine.
func (e *pebble) NewBatch() engine.Batch { return &batch{e.Engine.NewBatch(), e} }

// NewIter implements engine.Engine.
func (e *pebble) NewIter(lower, upper []byte) (engine.Iterator, error) {
	if err := e.ended(); err != nil {
		return nil, err
	}
	defer e.turn.yield()()
	it, err := e.Engine.NewIter(lower, upper)
	if err != nil {
		return nil, err
	}
	return &iterator{it, e.turn}, nil
}

// batch is a batch of a pebble.
type batch struct {
	engine.Batch
	engine *pebble
}

// Commit implements engine.Batch. As in the shipped store, the error of a flush that it begins is returned by later calls.
func (b *batch) Commit() error {
	size := b.Batch.Len()
	if err := b.engine.call(b.Batch.Commit); err != nil {
		return err
	}
	if b.engine.unflushed += size; b.engine.unflushed >= flushBytes {
		_ = b.engine.Flush()
	}
	return nil
}

// fatal is the error that made an engine stop, where the real one ends the process.
type fatal struct {
	once   sync.Once
	struck chan struct{} // closed once err is set
	err    error
}

func newFatal() *fatal { return &fatal{struck: make(chan struct{})} }

// report does not return: the goroutine that calls it holds Pebble's locks, and may neither go on nor unwind.
func (f *fatal) report(err error) {
	f.once.Do(func() {
		f.err = err
		close(f.struck)
	})
	select {}
}
