package users

import (
	"context"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/routines"
)

// Caller is who uses a stream of a native client, with what it had when it opened it.
type Caller struct {
	gate  *Gate
	as    Person
	who   *Person
	queue []func()
	busy  bool
	ctx   context.Context // of the routine that does what is in the queue
}

// Caller begins a stream of somebody.
func (g *Gate) Caller(p *Person) *Caller { return &Caller{gate: g, as: *p, who: p} }

// InTurn does something after what came before it on the stream, which may wait.
func (s *Caller) InTurn(f func()) {
	s.queue = append(s.queue, f)
	if s.busy {
		return
	}
	s.busy = true
	s.gate.ports.Go(func(wait routines.Wait) {
		c := &call{wait: wait}
		s.ctx = s.as.context(context.WithValue(context.Background(), callKey{}, c))
		for len(s.queue) > 0 && !c.over {
			next := s.queue[0]
			s.queue = s.queue[1:]
			next()
		}
		s.busy = false
	})
}

// Permit refuses who has not logged in.
func (s *Caller) Permit() error {
	err := s.gate.control.User(s.ctx)
	s.who.Note(err)
	return err
}

// Unsettled reports whether the member may know of other users than those who offer.
func (s *Caller) Unsettled() bool { return s.gate.control.Unsettled(s.ctx) }

// Sign puts into a command in whose name it comes.
func (s *Caller) Sign(command *kv.Command) error { return s.gate.control.SignOffer(s.ctx, command) }
