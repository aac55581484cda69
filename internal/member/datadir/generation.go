package datadir

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Generation is one store: the one that a member opened at its start, or one that a snapshot brought. Readers hold it.
// It is closed once the member has given it up and the last reader has released it.
type Generation struct {
	Number  uint64
	Engine  engine.Engine
	Machine *apply.Machine

	life    context.Context // see Life
	end     context.CancelFunc
	refs    atomic.Int64 // one is the member's own
	release func()       // Release, made once
	closed  chan struct{}
	after   func(*Generation, error) // called once it is closed
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

// Release ends an Acquire. The last one closes the store.
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

// giveUp ends the member's own hold. The store closes now, or with the last Release; after is called then.
func (g *Generation) giveUp(after func(*Generation, error)) {
	g.end()
	g.after = after
	g.Release()
}

// Life ends when the member stops, or when the next generation replaces this one. Long work on the store ends with it.
func (g *Generation) Life() context.Context { return g.life }

// Stores gives readers the store that counts now. All methods may be called concurrently.
type Stores struct {
	current atomic.Pointer[Generation]
	mu      sync.Mutex
	stopped bool
}

// Acquire returns the present generation, held. A generation that the next one has replaced is not returned any more.
// After the member stopped it returns the last one, which may be closed: then it is not held.
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

// Machine returns the state machine for reading; release must be called when done. Nobody may keep the pointer: a
// snapshot brings another one. Once the store is closed only what the machine has in memory can be read.
func (s *Stores) Machine() (machine *apply.Machine, release func()) {
	store, held := s.Acquire()
	if !held {
		return store.Machine, func() {}
	}
	return store.Machine, store.release
}

// Latest returns the state machine of the present store, which is not held: only what the machine has in memory may be read.
// Its caller must not wait for a store that is being replaced.
func (s *Stores) Latest() *apply.Machine { return s.current.Load().Machine }

// Readers returns how many hold the present generation, but for the member itself.
func (s *Stores) Readers() int64 { return max(s.current.Load().refs.Load()-1, 0) }

// Set makes g the present one.
func (s *Stores) Set(g *Generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current.Store(g)
	if s.stopped {
		g.end()
	}
}

// Stop ends the lives of the present generation and of all that follow.
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
