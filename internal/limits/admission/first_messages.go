package admission

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/quorate/quorate/internal/base/linked"
)

// FirstMessageLimits bound the time until the first message of a call has arrived in full.
type FirstMessageLimits struct {
	Timeout time.Duration
	// While more than Many calls wait, the first message may take no longer than ManyTimeout.
	Many        int
	ManyTimeout time.Duration
}

// call is a call that waits for its first message. If Tap returned it, it is the context of the call, too, which gRPC's reader
// of the stream uses; else its stream is ended.
type call struct {
	context.Context
	end  context.CancelFunc
	of   endable // its stream; nil: Tap returned it
	late atomic.Bool

	// Guarded by FirstMessages.mu.
	began time.Time
	place linked.Place[call]
}

type callKey struct{}

// endable is a stream of grpc-go's server: a status ends it, and its context with it, whichever goroutine waits for a message.
type endable interface {
	WriteStatus(why *status.Status) error
}

// errLate is how a call ends whose first message took too long.
var errLate = status.FromContextError(context.DeadlineExceeded)

// Err implements context.Context. gRPC's reader derives the status of the call from it.
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

// FirstMessages ends calls whose first message does not arrive in time.
//
// A client that announces a message and sends a part of it makes a gRPC server keep that part for as long as the stream
// is open. gRPC gives the window of the connection back when bytes arrive, so that flow control bounds each stream, but
// not all of them together. So the first message of a call has a deadline, and a shorter one while many are awaited:
// the memory of half-sent messages is bounded by what the network delivers until the deadline. Later messages of a
// stream have no deadline: gRPC does not distinguish a half-sent message from an idle stream.
type FirstMessages struct {
	limits FirstMessageLimits

	mu      sync.Mutex
	waiting linked.List[call] // calls that wait, in the order in which they began to
	ended   uint64
}

// NewFirstMessages makes one that ends calls while Run runs.
func NewFirstMessages(limits FirstMessageLimits) *FirstMessages {
	return &FirstMessages{limits: limits}
}

// Tap is for grpc.InTapHandle: it gives a call a context by which Sweep can end it. A server of grpc-go whose handlers call
// Receive needs none, which saves six allocations a call: there Sweep ends the stream.
func (f *FirstMessages) Tap(ctx context.Context, _ *tap.Info) (context.Context, error) {
	c := new(call)
	c.Context, c.end = context.WithCancel(ctx) // gRPC ends ctx, and so this one, with the stream
	return c, nil
}

// Receive calls receive, which reads the first message of the call of ctx. If that takes too long, the call ends, and
// receive returns DeadlineExceeded.
func (f *FirstMessages) Receive(ctx context.Context, receive func() error) error {
	c, tapped := ctx.Value(callKey{}).(*call)
	if !tapped {
		stream, ours := grpc.ServerTransportStreamFromContext(ctx).(endable)
		if !ours {
			return errors.New("admission: the server has no tap, and its streams cannot be ended")
		}
		c = &call{of: stream}
	}
	f.enter(c, time.Now())
	defer f.leave(c)
	err := receive()
	if err != nil && c.late.Load() {
		return errLate.Err()
	}
	return err
}

// Wait has end called if what begins now takes too long. arrived says that it has come.
func (f *FirstMessages) Wait(end func()) (arrived func()) {
	c := &call{end: end}
	f.enter(c, time.Now())
	return func() { f.leave(c) }
}

func (f *FirstMessages) enter(c *call, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.began = now
	f.waiting.PushBack(&c.place, c)
}

func (f *FirstMessages) leave(c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.place.Remove() // it is out already if it was overdue
}

// overdue removes and returns the call that has waited longest, if it has waited too long.
func (f *FirstMessages) overdue(now time.Time) *call {
	f.mu.Lock()
	defer f.mu.Unlock()
	timeout := f.limits.Timeout
	if f.waiting.Len() > f.limits.Many {
		timeout = min(timeout, f.limits.ManyTimeout)
	}
	c := f.waiting.First()
	if c == nil || now.Sub(c.began) < timeout {
		return nil
	}
	c.place.Remove()
	f.ended++
	return c
}

// Sweep ends the calls that are overdue.
func (f *FirstMessages) Sweep(now time.Time) {
	for c := f.overdue(now); c != nil; c = f.overdue(now) {
		c.late.Store(true)
		if c.of == nil {
			c.end()
			continue
		}
		_ = c.of.WriteStatus(errLate) // it fails if the call has ended meanwhile, or its connection
	}
}

// sweepInterval is how often overdue calls are looked for.
const sweepInterval = 250 * time.Millisecond

// Run sweeps until stop is closed.
func (f *FirstMessages) Run(stop <-chan struct{}) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			f.Sweep(now)
		case <-stop:
			return
		}
	}
}

// Counts returns how many calls wait for their first message, and how many were ended because it did not come.
func (f *FirstMessages) Counts() (waiting int, ended uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting.Len(), f.ended
}
