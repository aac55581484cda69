package users

import (
	"context"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/routines"
)

// Caller is the user of a native client's stream, with the credentials that it had when it opened the stream.
type Caller struct {
	gate  *Gate
	as    Person
	who   *Person
	queue []func()
	busy  bool
	ctx   context.Context // of the routine that works on the queue
}

// Caller returns the Caller of a new stream of a client.
func (g *Gate) Caller(p *Person) *Caller { return &Caller{gate: g, as: *p, who: p} }

// InTurn calls f after the earlier calls on the stream, which may wait.
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

// Permit refuses a user that has not logged in.
func (s *Caller) Permit() error {
	err := s.gate.control.User(s.ctx)
	s.who.Note(err)
	return err
}

// Unsettled reports whether the member may know other users than the clients that make offers.
func (s *Caller) Unsettled() bool { return s.gate.control.Unsettled(s.ctx) }

// Sign adds the user to a command.
func (s *Caller) Sign(command *kv.Command) error { return s.gate.control.SignOffer(s.ctx, command) }
