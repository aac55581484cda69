package member

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Generation is one store: the one that a member opened at its start, or one that a snapshot brought. Whoever reads it
// holds it; it is closed when it was let go and nobody holds it any more.
type Generation struct {
	Number  uint64
	Engine  engine.Engine
	Machine *apply.Machine

	// life ends when the member stops, or when the next generation replaces this one: long work on the store takes it.
	life   context.Context
	end    context.CancelFunc
	refs   atomic.Int64 // one is the member's own
	done   func()       // release, made once
	closed chan struct{}
	after  func(*Generation, error) // once it is closed
	err    error
}

func newGeneration(number uint64) *Generation {
	g := &Generation{Number: number, closed: make(chan struct{})}
	g.life, g.end = context.WithCancel(context.Background())
	g.refs.Store(1)
	g.done = g.release
	return g
}

// hold keeps the store open until release; it fails if the store is closed or about to be.
func (g *Generation) hold() bool {
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

func (g *Generation) release() {
	if g.refs.Add(-1) > 0 {
		return
	}
	g.err = g.Engine.Close()
	if g.after != nil {
		g.after(g, g.err)
	}
	close(g.closed)
}

// letGo ends the member's own hold. The store closes now, or when the last reader is done.
func (g *Generation) letGo(after func(*Generation, error)) {
	g.end()
	g.after = after
	g.release()
}

// generations is the store that counts now, for readers of any goroutine.
type generations struct {
	current atomic.Pointer[Generation]
	mu      sync.Mutex
	stopped bool
}

// hold returns the present generation, held. A generation that the next one just replaced is not returned any more; after
// the member stopped, the last one is, if it is still open.
func (s *generations) hold() (*Generation, bool) {
	for {
		g := s.current.Load()
		if g.hold() {
			return g, true
		}
		if s.current.Load() == g {
			return g, false
		}
	}
}

// set makes g the present one.
func (s *generations) set(g *Generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current.Store(g)
	if s.stopped {
		g.end()
	}
}

// stop ends the lives of the present generation and of all that follow.
func (s *generations) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.current.Load().end()
}

// within returns a context that ends with ctx and with the life of g.
func (g *Generation) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(g.life, func() { cancel(errGenerationEnded) })
	return ctx, func() { stop(); cancel(nil) }
}

// errGenerationEnded is why long work on a store was cut short.
var errGenerationEnded = errors.New("member: the store is being closed or replaced by a snapshot: try again")
