package datadir

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Generation is one store: the one that a member opened at its start, or one that a snapshot brought. Readers hold it. It
// closes once the member has given it up and the last reader has released it.
type Generation struct {
	Number  uint64
	Engine  engine.Engine
	Machine *apply.Machine

	life    context.Context // see Life
	end     context.CancelFunc
	refs    atomic.Int64 // reference count; one is the member's own
	release func()       // the method Release, allocated once
	closed  chan struct{}
	after   func(*Generation, error) // called once the store is closed
	err     error
}

func newGeneration(number uint64) *Generation {
	g := &Generation{Number: number, closed: make(chan struct{})}
	g.life, g.end = context.WithCancel(context.Background())
	g.refs.Store(1)
	g.release = g.Release
	return g
}

// Acquire keeps the store open until Release. It fails if the store is closed or about to be.
func (g *Generation) Acquire() bool {
	for {
		refs := g.refs.Load()
		if refs == 0 {
			return false
		}
		if g.refs.CompareAndSwap(refs, refs+1) {
			return true
		}
	}
}

// Release ends an Acquire. The last Release closes the store.
func (g *Generation) Release() {
	if g.refs.Add(-1) > 0 {
		return
	}
	g.err = g.Engine.Close()
	if g.after != nil {
		g.after(g, g.err)
	}
	close(g.closed)
}

// giveUp drops the member's own reference. The store closes now, or with the last Release; then after is called.
func (g *Generation) giveUp(after func(*Generation, error)) {
	g.end()
	g.after = after
	g.Release()
}

// Life ends when the member stops, or when the next generation replaces this one. Long work on the store ends with it.
func (g *Generation) Life() context.Context { return g.life }

// Stores gives readers the current store. All methods may be called concurrently.
type Stores struct {
	current atomic.Pointer[Generation]
	mu      sync.Mutex
	stopped bool
}

// Acquire returns the current generation, and reports whether it is held. After the member stopped, it returns the last
// generation, which may be closed and then is not held.
func (s *Stores) Acquire() (*Generation, bool) {
	for {
		g := s.current.Load()
		if g.Acquire() {
			return g, true
		}
		if s.current.Load() == g {
			return g, false
		}
	}
}

// Machine returns the state machine for reading; release must be called when done. The caller must not keep the pointer: a
// snapshot brings another machine. Once the store is closed, only the state that the machine has in memory can be read; while
// it is being closed, Machine waits, since nothing may read it then.
func (s *Stores) Machine() (machine *apply.Machine, release func()) {
	store, held := s.Acquire()
	if !held {
		<-store.closed
		return store.Machine, func() {}
	}
	return store.Machine, store.release
}

// Latest returns the state machine of the current store without holding the store: the caller may read only the state that the
// machine has in memory. It is for callers that must not wait for a store that is being replaced.
func (s *Stores) Latest() *apply.Machine { return s.current.Load().Machine }

// Readers returns how many readers hold the current generation, without the member itself.
func (s *Stores) Readers() int64 { return max(s.current.Load().refs.Load()-1, 0) }

// Set makes g the current generation.
func (s *Stores) Set(g *Generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current.Store(g)
	if s.stopped {
		g.end()
	}
}

// Stop ends the lives of the current generation and of all later ones.
func (s *Stores) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.current.Load().end()
}

// Within returns a context that ends with ctx and with the life of g.
func (g *Generation) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(g.life, func() { cancel(ErrStoreEnded) })
	return ctx, func() { stop(); cancel(nil) }
}
