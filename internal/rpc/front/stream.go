package front

import (
	"bytes"
	"context"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/rpc/h2"
)

// serverStream is a stream: h2.Receiver to the connection, grpc.ServerStream to the service.
type serverStream struct {
	transport
	server *Server
	stream *h2.Stream
	ctx    context.Context
	cancel context.CancelFunc
	told   func(err error) // how the call ended
	body   assembler       // that RecvMsg reads
	part   []byte          // of what was received, that is being read
	read   []byte          // what part is of: its room is used again
	last   int             // bytes that came of the messages which were returned, and are not given back
	parts  []h2.Part       // room for those of one call of sendFramed

	queue    sync.Mutex
	received []byte     // and not read; the window of the stream bounds it
	came     *sync.Cond // more, or an end
	ended    bool
	kept     int    // bytes that came and are kept
	begins   int    // what its goroutine takes until the service has begun, and counts it
	unpacked int    // bytes of the message that is being read, or was read last, beside those that came
	full     bool   // there was no room for more
	late     bool   // a message did not come in time
	got      bool   // a message, or there will be none
	arrived  func() // nil: no goroutine waits for the only message
	whole    func() // nil: no goroutine waits for the rest of a message
}

// openStream begins a streaming call. Its goroutine counts from the start: a client may open, and reset, more streams than
// begin to be served at once.
func (s *Server) openStream(stream *h2.Stream, r *request, ended bool) *serverStream {
	x := &serverStream{server: s, stream: stream, ended: ended, begins: serveBytes}
	x.method, x.request, x.compression = r.method.name, r, r.compression
	x.send = func(header []byte) {
		stream.Headers(header)
		stream.Flush()
	}
	x.framed, x.waitSent, x.abandon = x.sendFramed, x.stream.WaitSent, x.stream.Abandon
	x.came = sync.NewCond(&x.queue)
	x.body = assembler{most: s.options.MaxMessage, compressor: r.compression, turns: s.options.Turns, holder: x}
	ctx, cancel := r.withDeadline()
	ctx, x.told = s.told(ctx, r)
	x.ctx, x.cancel = grpc.NewContextWithServerTransportStream(ctx, &x.transport), cancel
	context.AfterFunc(ctx, x.wake)
	stream.Conn().(*connection).begin(x.serve)
	return x
}

// wake has the service notice that the call is over.
func (x *serverStream) wake() {
	x.queue.Lock()
	x.came.Broadcast()
	x.queue.Unlock()
	if x.ctx.Err() == context.DeadlineExceeded {
		x.stream.Expire()
	}
}

func (x *serverStream) serve() {
	m := x.request.method
	defer x.stream.Left()
	defer x.cancel()
	defer x.settle()
	info := &grpc.StreamServerInfo{
		FullMethod: m.name, IsClientStream: m.stream.ClientStreams, IsServerStream: m.stream.ServerStreams,
	}
	err := errUnfinished
	defer func() { x.told(err) }()
	if x.server.options.Stream != nil {
		err = x.server.options.Stream(m.impl, x, info, m.stream.Handler)
	} else {
		err = m.stream.Handler(m.impl, x)
	}
	if err != nil {
		x.stream.Reply(nil, nil, x.trailers(statusOf(err)))
	} else {
		x.stream.Reply(x.header(), nil, x.trailers(nil))
	}
}

// await implements unsent.
func (x *serverStream) await(unsent func(end func()) (arrived func())) {
	x.queue.Lock()
	defer x.queue.Unlock()
	if unsent == nil || x.got {
		return
	}
	x.arrived = unsent(x.expire)
}

// settle takes note of the first message, or that there will be none.
func (x *serverStream) settle() {
	x.queue.Lock()
	arrived, whole := x.arrived, x.whole
	x.got, x.arrived, x.whole = true, nil, nil
	x.queue.Unlock()
	if arrived != nil {
		arrived()
	}
	if whole != nil {
		whole()
	}
}

// Receive implements h2.Receiver.
func (x *serverStream) Receive(p []byte, ended bool) {
	x.queue.Lock()
	defer x.queue.Unlock()
	x.ended = x.ended || ended
	if !x.full && !x.stream.Hold(copies*(x.kept+len(p))+x.unpacked+x.begins) {
		x.full, x.received = true, nil
	}
	if x.full {
		x.stream.Took(len(p)) // the stream ends, and nothing of it is kept
	} else {
		x.received = append(x.received, p...)
		x.kept += len(p)
	}
	x.came.Signal()
}

// settled gives back what came of the messages that were read before.
func (x *serverStream) settled() {
	x.queue.Lock()
	defer x.queue.Unlock()
	x.kept -= x.last
	x.last, x.unpacked, x.begins = 0, 0, 0
	x.stream.Hold(copies * x.kept)
}

// holdUnpacked counts what a message takes beside what came of it, until the next one is read.
func (x *serverStream) holdUnpacked(bytes int) bool {
	x.queue.Lock()
	defer x.queue.Unlock()
	if !x.stream.Hold(copies*x.kept + bytes) {
		return false
	}
	x.unpacked = bytes
	return true
}

// Lost implements h2.Receiver.
func (x *serverStream) Lost() { x.cancel() }

// Context implements grpc.ServerStream.
func (x *serverStream) Context() context.Context { return x.ctx }

// SetTrailer implements grpc.ServerStream.
func (x *serverStream) SetTrailer(md metadata.MD) { _ = x.transport.SetTrailer(md) }

// SendMsg implements grpc.ServerStream.
func (x *serverStream) SendMsg(m any) error {
	parts, err := x.server.encoded(m, x.compressor())
	if err != nil {
		return err
	}
	return x.sendParts(parts)
}

// sendFramed sends messages that have their prefixes, many at once. One goroutine at a time sends.
func (x *serverStream) sendFramed(messages mem.BufferSlice) error {
	parts := x.parts[:0]
	for _, b := range messages {
		parts = append(parts, h2.Part{Data: b.ReadOnlyData(), Release: b.Free})
	}
	err := x.sendParts(parts) // which keeps what is in them, and not the slice
	if clear(parts); cap(parts) <= keptParts {
		x.parts = parts
	}
	return err
}

func (x *serverStream) sendParts(parts []h2.Part) error {
	if header := x.header(); header != nil {
		x.stream.Headers(header)
	}
	if !x.stream.Send(parts) {
		if x.ctx.Err() == nil && x.stream.Abandoned() {
			return status.Error(codes.Unavailable, "transport is closing")
		}
		x.cancel() // a stream that its client reset has ended for Send before Lost is called
		return status.FromContextError(x.ctx.Err()).Err()
	}
	return nil
}

// RecvMsg implements grpc.ServerStream.
func (x *serverStream) RecvMsg(m any) error {
	message, err := x.next()
	if err != nil {
		return err
	}
	message = bytes.Clone(message) // it is kept, and must not keep what came with it
	if err := x.server.options.Codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(message)}, m); err != nil {
		return status.Errorf(codes.Internal, "grpc: failed to unmarshal the received message: %v", err)
	}
	return nil
}

// awaitWhole bounds how long the rest of a message may take to come. queue is locked.
func (x *serverStream) awaitWhole() {
	if x.body.partial() && x.whole == nil && x.arrived == nil && x.server.options.Unsent != nil {
		x.whole = x.server.options.Unsent(x.expire)
	}
}

// expire ends the wait for a message.
func (x *serverStream) expire() {
	x.queue.Lock()
	x.late = true
	x.came.Broadcast()
	x.queue.Unlock()
}

// next waits for a message. One goroutine at a time calls it.
func (x *serverStream) next() ([]byte, error) {
	if len(x.part) == 0 || x.last > keptBytes || x.unpacked > 0 { // only this goroutine changes unpacked
		x.settled()
	}
	for {
		if err := x.more(); err != nil {
			return nil, err
		}
		message, rest, done, err := x.body.take(x.part)
		x.stream.Took(len(x.part) - len(rest))
		x.last += len(x.part) - len(rest)
		if x.part = rest; err != nil || done {
			x.settle()
			return message, err
		}
	}
}

// keptParts is the largest room for parts of messages which a stream keeps.
const keptParts = 8

// keptBytes is the largest room for bytes that were read which a stream keeps.
const keptBytes = 4 << 10

// more waits until part is not empty.
func (x *serverStream) more() error {
	if len(x.part) > 0 {
		return nil
	}
	x.queue.Lock()
	defer x.queue.Unlock()
	for len(x.received) == 0 && !x.ended && !x.late && !x.full && x.ctx.Err() == nil {
		x.awaitWhole()
		x.came.Wait()
	}
	switch {
	case x.full:
		return errExhausted.Err()
	case x.ctx.Err() != nil:
		return status.FromContextError(x.ctx.Err()).Err()
	case x.late:
		return status.FromContextError(context.DeadlineExceeded).Err()
	case len(x.received) > 0:
		free := x.read[:0]
		if cap(free) > keptBytes {
			free = nil
		}
		x.part, x.read, x.received = x.received, x.received, free
		return nil
	case x.body.partial():
		return status.Error(codes.Internal, io.ErrUnexpectedEOF.Error())
	}
	return io.EOF
}
