package front

import (
	"bytes"
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/rpc/h2"
)

// Call is a unary call.
type Call struct {
	server  *Server
	stream  *h2.Stream
	writer  *answerWriter
	request *request
	// Of the goroutine that reads.
	body assembler
	over bool // the message has come: what follows is dropped
	held int  // bytes that the stream counts for the message of a prompt call

	// Finish is called by a writer after Done, or by a reader after DoneButRead, and answers the call. After Done it must not
	// wait.
	Finish func()

	mu      sync.Mutex
	taken   bool   // the message has come, or will not
	arrived func() // nil: no goroutine waits for the message
	lost    bool
	onLost  func()
	cancel  context.CancelFunc // of Go; nil before
}

// Context has the call's metadata and peer. It does not end.
func (c *Call) Context() context.Context { return c.request.ctx }

// Receive implements h2.Receiver.
func (c *Call) Receive(p []byte, ended bool) {
	c.stream.Took(len(p)) // a message has a bound of its own
	if c.over {
		return
	}
	message, rest, done, err := c.body.take(p)
	if !done && !ended && err == nil {
		if c.stream.Hold(c.body.kept()) {
			return
		}
		c.body.message, err = nil, errExhausted.Err()
	}
	if c.over = true; !c.take() {
		return
	}
	switch {
	case err != nil:
		c.fail(status.Convert(err))
	case !done:
		c.fail(status.New(codes.Internal, "grpc: the message of a call is not complete"))
	case len(rest) > 0:
		c.fail(status.New(codes.Internal, "grpc: a unary call with more than one message"))
	default:
		c.begin(message)
	}
}

// take ends the wait for the message; false if it has ended before.
func (c *Call) take() bool {
	c.mu.Lock()
	first, arrived := !c.taken, c.arrived
	c.taken, c.arrived = true, nil
	c.mu.Unlock()
	if first && arrived != nil {
		arrived()
	}
	return first
}

// await implements unsent.
func (c *Call) await(unsent func(end func()) (arrived func())) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if unsent == nil || c.taken {
		return
	}
	c.arrived = unsent(func() {
		if c.take() {
			c.fail(status.New(codes.DeadlineExceeded, context.DeadlineExceeded.Error()))
			c.stream.Flush()
		}
	})
}

// fail ends the call, for the goroutine that reads, which flushes.
func (c *Call) fail(why *status.Status) {
	c.stream.Refuse(refusal(200, why))
	c.stream.Left()
}

const (
	// smallRequest is the size up to which a request is not counted beside its stream.
	smallRequest = 512
	// serveBytes is what a goroutine takes that serves a call.
	serveBytes = 8 << 10
	// fewPartBytes is what the parts of a decoded request may take that are not counted beside its stream.
	fewPartBytes = 2 << 10
)

// PartCounter is a codec that says about how much a decoded message takes beside its strings: two bytes of a request may make a
// hundred in memory.
type PartCounter interface {
	PartBytes(encoded []byte, decoded any) int
}

// holdUnpacked counts what the message takes beside what came of it.
func (c *Call) holdUnpacked(bytes int) bool { return c.stream.Hold(c.body.kept() + bytes) }

// begin serves the call, promptly if its method can.
func (c *Call) begin(message []byte) {
	if len(message) > smallRequest {
		if c.held = copies * len(message); !c.stream.Hold(c.held) {
			c.fail(errExhausted)
			return
		}
	}
	if prompt := c.request.prompt; prompt != nil && prompt(c, message) {
		return
	}
	if !c.stream.Hold(copies*len(message) + serveBytes) {
		c.fail(errExhausted)
		return
	}
	ctx, cancel := c.request.withDeadline()
	c.OnLost(cancel)
	kept := bytes.Clone(message)
	c.conn().(*connection).begin(func() { c.serve(ctx, cancel, kept) })
}

func (r *request) withDeadline() (context.Context, context.CancelFunc) {
	if r.timeout >= 0 {
		return context.WithTimeout(r.ctx, r.timeout)
	}
	return context.WithCancel(r.ctx)
}

// serve runs the method as a grpc.Server would.
func (c *Call) serve(ctx context.Context, cancel context.CancelFunc, message []byte) {
	defer c.stream.Left()
	defer cancel()
	m, s := c.request.method, c.server
	ctx, ended := s.told(ctx, c.request)
	err := errUnfinished
	defer func() { ended(err) }()
	t := &transport{method: m.name, compression: c.request.compression, request: c.request}
	ctx = grpc.NewContextWithServerTransportStream(ctx, t)
	answer, err := m.unary.Handler(m.impl, ctx, func(v any) error {
		if err := s.options.Codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(message)}, v); err != nil {
			return status.Errorf(codes.Internal, "grpc: failed to unmarshal the received message: %v", err)
		}
		if counter, ok := s.options.Codec.(PartCounter); ok {
			return c.holdParts(copies*len(message)+serveBytes, counter.PartBytes(message, v))
		}
		return nil
	}, s.options.Unary)
	var parts []h2.Part
	if err == nil {
		parts, err = s.encoded(answer, t.compressor())
	}
	if err != nil {
		c.stream.Reply(nil, nil, t.trailers(statusOf(err)))
	} else {
		c.stream.Reply(t.header(), parts, t.trailers(nil))
	}
}

// errUnfinished is the end of a call whose method did not return, for an observer of calls: the method panicked.
var errUnfinished = status.Error(codes.Unknown, "the method did not return")

// encoded makes the parts of a message. Its memory is counted until they were sent.
func (s *Server) encoded(message any, compressor string) ([]h2.Part, error) {
	codec := s.options.Codec
	knowing, ok := codec.(interface{ Counted(v any) bool })
	counted := ok && knowing.Counted(message) // asked before: encoding may end the account
	buffers, err := codec.Marshal(message)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "grpc: error while marshaling: %v", err)
	}
	parts, err := packed(s.options.Turns, buffers, compressor)
	for i := range parts {
		parts[i].Counted = counted
	}
	return parts, err
}

// statusOf is the status of an error, as a grpc.Server makes it.
func statusOf(err error) *status.Status {
	if s, ok := status.FromError(err); ok {
		return s
	}
	return status.FromContextError(err)
}

// Lost implements h2.Receiver.
func (c *Call) Lost() {
	if c.take() {
		c.stream.Left()
		return
	}
	c.mu.Lock()
	c.lost = true
	tell, cancel := c.onLost, c.cancel
	c.mu.Unlock()
	if tell != nil {
		tell()
	}
	if cancel != nil {
		cancel()
	}
}

// OnLost has f called, once, when the client has gone. It may come while the call is being finished.
func (c *Call) OnLost(f func()) {
	c.mu.Lock()
	c.onLost = f
	lost := c.lost
	c.mu.Unlock()
	if lost {
		f()
	}
}

// Done has a prompt call finished by a writer.
func (c *Call) Done() { c.writer.push(c) }

func (c *Call) finish() { c.Finish() }

func (c *Call) flush() { c.stream.Flush() }

func (c *Call) conn() any { return c.stream.Conn() }

// DoneButRead has a prompt call finished by a reader: it may wait for a disk.
func (c *Call) DoneButRead() { c.server.readers.push(c) }

// Reserve counts the memory of the goroutine that Go starts, or returns why there is none (ResourceExhausted).
func (c *Call) Reserve() error {
	if !c.stream.Hold(c.held + serveBytes) {
		return errExhausted.Err()
	}
	return nil
}

// HoldParts counts so many bytes for the parts of the decoded message of a prompt call: a few are counted only if the call gets
// a goroutine. If there is no room, it has changed nothing.
func (c *Call) HoldParts(bytes int) error {
	if err := c.holdParts(c.held, bytes); err != nil {
		return err
	}
	c.held += bytes
	return nil
}

// holdParts counts the parts of a decoded message beside what is counted for the call.
func (c *Call) holdParts(beside, bytes int) error {
	if bytes > fewPartBytes && !c.stream.Hold(beside+bytes) {
		return errExhausted.Err()
	}
	return nil
}

// Go finishes a prompt call by f, in a goroutine that Reserve has counted. The context of f ends when the client has gone, or
// at the deadline of the call, of whose time so much is spent. f answers the call.
func (c *Call) Go(spent time.Duration, f func(ctx context.Context)) {
	r := *c.request
	if r.timeout >= 0 {
		r.timeout = max(0, r.timeout-spent)
	}
	ctx, cancel := r.withDeadline()
	c.mu.Lock()
	c.cancel = cancel
	lost := c.lost
	c.mu.Unlock()
	if lost {
		cancel()
	}
	go func() {
		defer cancel()
		f(ctx)
	}()
}

// Answer answers a prompt call, without flushing that; with an error if it failed.
func (c *Call) Answer(answer h2.Message, err error) {
	if err != nil {
		refuse(c.stream, 200, statusOf(err))
	} else {
		c.stream.Answer(answer)
	}
	c.stream.Left()
}

// AnswerCounted is Answer for a message whose memory is counted until it was sent.
func (c *Call) AnswerCounted(answer any) {
	defer c.stream.Left()
	parts, err := c.server.encoded(answer, "")
	if err != nil {
		refuse(c.stream, 200, statusOf(err))
		return
	}
	t := &transport{method: c.request.method.name, request: c.request}
	c.stream.Reply(t.header(), parts, t.trailers(nil))
}

// Left says that a prompt call that was lost will not be answered.
func (c *Call) Left() { c.stream.Left() }

// Flush writes the answers of the connection, for a goroutine that is no writer.
func (c *Call) Flush() { c.stream.Flush() }
