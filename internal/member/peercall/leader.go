package peercall

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
)

// Port is what asking needs of a member.
type Port interface {
	ID() consensus.MemberID
	Leader() consensus.MemberID
	LeaderChanged() <-chan struct{}
	// Applied names the configuration that is applied here.
	Applied() consensus.ConfigID
	// Call carries a body to a peer and returns its answer, which has at most so many bytes.
	Call(ctx context.Context, to consensus.MemberID, method string, body []byte, most int) ([]byte, error)
}

// Options say how a leader is asked.
type Options struct {
	Timeout  time.Duration // of a request, if its context has none that is shorter
	Poll     time.Duration // until it is asked again
	Stopping context.Context
	// Errors of asking: there is no leader, it does not answer in time, this member stops.
	NoLeader, TimedOut, Stopped error
}

// Caller asks other members.
type Caller struct {
	options Options
	table   *Table
	port    Port
}

// NewCaller returns the caller of a member whose own answers are in table.
func NewCaller(table *Table, port Port, options Options) *Caller {
	return &Caller{options: options, table: table, port: port}
}

// Table has the methods that the member answers itself.
func (c *Caller) Table() *Table { return c.table }

// Ask asks one member, which may be this one.
func Ask[Q, A any](ctx context.Context, c *Caller, to consensus.MemberID, m *Method[Q, A], q Q) (answer A, err error) {
	if to == c.port.ID() {
		return c.table.served[m.Name].here.(func(context.Context, Q) (A, error))(ctx, q)
	}
	body, err := Encode(m, c.port.Applied(), q)
	if err != nil {
		return answer, err
	}
	raw, err := c.port.Call(ctx, to, m.Name, body, m.MostAnswer)
	if _, coded := status.FromError(err); err != nil && coded {
		err = &callError{err}
	}
	if err != nil {
		return answer, err
	}
	return Decode(c.table.faults, m, raw)
}

// AtLeader asks the leader, which may be this member. It asks again until there is an answer or a final error, or until
// Options.Timeout is over.
func AtLeader[Q, A any](ctx context.Context, c *Caller, m *Method[Q, A], q Q) (answer A, err error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	var last error
	for {
		changed, leader := c.port.LeaderChanged(), c.port.Leader()
		if leader != consensus.NoMember {
			answer, last = Ask(ctx, c, leader, m, q)
			if c.table.faults.final(last) {
				return answer, last
			}
		}
		poll := time.NewTimer(c.options.Poll)
		select {
		case <-changed:
		case <-poll.C:
		case <-c.options.Stopping.Done():
			poll.Stop()
			return answer, c.options.Stopped
		case <-ctx.Done():
			poll.Stop()
			return answer, c.timedOut(caller.Err(), leader, last)
		}
		poll.Stop()
	}
}

// timedOut says why there was no answer. Options.NoLeader means that nothing happened: no leader was asked. One that was, last,
// may have done what it was asked.
func (c *Caller) timedOut(caller error, leader consensus.MemberID, last error) error {
	switch {
	case caller != nil:
		return caller
	case leader == consensus.NoMember && last == nil:
		return c.options.NoLeader
	case last != nil:
		return fmt.Errorf("%w: %w", c.options.TimedOut, last)
	}
	return c.options.TimedOut
}
