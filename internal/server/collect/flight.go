package collect

import (
	"context"
	"sync"
	"time"
)

// fresh is for how long a result is given to others who ask.
const fresh = time.Second

// flight is a piece of work that all callers share. The zero value is ready.
type flight[T any] struct {
	mu      sync.Mutex
	running *result[T] // nil: no work is under way
	last    *result[T] // nil: there is none, or it is no longer fresh
}

// result is what came of the work, once done is closed.
type result[T any] struct {
	done chan struct{}
	made T
}

// get returns the result of work that is under way, or ended less than fresh ago, or is begun now. begin runs work in a
// goroutine. The error is that of ctx: the work goes on for the others.
func (f *flight[T]) get(ctx context.Context, begin func(run func()), work func() T) (made T, err error) {
	f.mu.Lock()
	r := f.last
	if r == nil {
		r = f.running
	}
	if r == nil {
		r = &result[T]{done: make(chan struct{})}
		f.running = r
		begin(func() { f.run(r, work) })
	}
	f.mu.Unlock()
	select {
	case <-r.done:
		return r.made, nil
	case <-ctx.Done():
		return made, ctx.Err()
	}
}

func (f *flight[T]) run(r *result[T], work func() T) {
	made := work()
	f.mu.Lock()
	defer f.mu.Unlock()
	r.made = made
	f.last, f.running = r, nil
	close(r.done)
	time.AfterFunc(fresh, func() { f.forget(r) })
}

// forget gives the memory of a result back.
func (f *flight[T]) forget(r *result[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == r {
		f.last = nil
	}
}
