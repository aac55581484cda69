// Package firstmsg ends calls whose first message does not come.
//
// A client that announces a message and sends a part of it makes a gRPC server keep that part for as long as the stream is
// open. gRPC gives the window of the connection back when bytes arrive, so that flow control bounds each stream, but not all
// of them. Here the first message of a call has a deadline, and a shorter one while many are waited for: the memory of
// half-sent messages is bounded by what the lines bring within it. Later messages of a stream have none: gRPC does not tell
// a half-sent message from silence.
package firstmsg

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/tap"
)

// Limits are how long a first message may take.
type Limits struct {
	Patience time.Duration
	// While more than Crowd calls wait, the first message may take no longer than Crowded.
	Crowd   int
	Crowded time.Duration
}

// call is the context of a call. It is what gRPC's reader of the stream listens to, because it comes from Tap.
type call struct {
	context.Context
	end  context.CancelFunc
	late atomic.Bool

	// Guarded by Gate.mu.
	began            time.Time
	waits            bool
	earlier, further *call
}

type callKey struct{}

// Err implements context.Context. gRPC's reader makes the status of the call of it.
func (c *call) Err() error {
	err := c.Context.Err()
	if err != nil && c.late.Load() {
		return context.DeadlineExceeded
	}
	return err
}

// Value implements context.Context.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Gate knows the calls that wait for their first message, in the order in which they began to.
type Gate struct {
	limits Limits

	mu             sync.Mutex
	oldest, newest *call
	waiting        int
	ended          uint64
}

// New makes a gate. Run must run for it to end anything.
func New(limits Limits) *Gate { return &Gate{limits: limits} }

// Tap is for grpc.InTapHandle: it gives a call a context by which Sweep can end it.
func (g *Gate) Tap(ctx context.Context, _ *tap.Info) (context.Context, error) {
	c := new(call)
	c.Context, c.end = context.WithCancel(ctx) // gRPC ends ctx, and so this one, with the stream
	return c, nil
}

// Receive calls receive, which reads the first message of the call of ctx. When that takes too long the call ends with
// DeadlineExceeded, which receive returns.
func (g *Gate) Receive(ctx context.Context, receive func() error) error {
	c, tapped := ctx.Value(callKey{}).(*call)
	if !tapped {
		return errors.New("firstmsg: the server has no tap")
	}
	g.enter(c, time.Now())
	defer g.leave(c)
	return receive()
}

func (g *Gate) enter(c *call, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.began, c.waits, c.earlier = now, true, g.newest
	if g.newest == nil {
		g.oldest = c
	} else {
		g.newest.further = c
	}
	g.newest = c
	g.waiting++
}

func (g *Gate) leave(c *call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.waits {
		g.remove(c)
	}
}

func (g *Gate) remove(c *call) {
	if c.earlier == nil {
		g.oldest = c.further
	} else {
		c.earlier.further = c.further
	}
	if c.further == nil {
		g.newest = c.earlier
	} else {
		c.further.earlier = c.earlier
	}
	c.earlier, c.further, c.waits = nil, nil, false
	g.waiting--
}

// overdue takes out the call that has waited longest, if that is too long.
func (g *Gate) overdue(now time.Time) *call {
	g.mu.Lock()
	defer g.mu.Unlock()
	patience := g.limits.Patience
	if g.waiting > g.limits.Crowd {
		patience = min(patience, g.limits.Crowded)
	}
	c := g.oldest
	if c == nil || now.Sub(c.began) < patience {
		return nil
	}
	g.remove(c)
	g.ended++
	return c
}

// Sweep ends the calls that are overdue.
func (g *Gate) Sweep(now time.Time) {
	for c := g.overdue(now); c != nil; c = g.overdue(now) {
		c.late.Store(true)
		c.end()
	}
}

// sweepInterval is how often overdue calls are looked for.
const sweepInterval = 250 * time.Millisecond

// Run sweeps until stop is closed.
func (g *Gate) Run(stop <-chan struct{}) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			g.Sweep(now)
		case <-stop:
			return
		}
	}
}

// Counts returns how many calls wait for their first message, and how many were ended because it did not come.
func (g *Gate) Counts() (waiting int, ended uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting, g.ended
}
