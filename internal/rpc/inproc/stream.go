package inproc

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// NewStream implements grpc.ClientConnInterface. The stream ends when its service returns, or ctx ends.
func (c *Channel) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, _ ...grpc.CallOption,
) (grpc.ClientStream, error) {
	called, ok := c.streams[method]
	if !ok {
		return nil, errUnknown(method)
	}
	inside, transport := serverContext(ctx, method)
	inside, cancel := context.WithCancel(inside)
	p := &pipe{
		channel: c, transport: transport, caller: ctx, inside: inside, manyRequests: desc.ClientStreams,
		requests: make(chan mem.BufferSlice), closed: make(chan struct{}), responses: make(chan mem.BufferSlice),
		taken: make(chan struct{}), ended: make(chan struct{}),
	}
	info := &grpc.StreamServerInfo{
		FullMethod: method, IsClientStream: called.desc.ClientStreams, IsServerStream: called.desc.ServerStreams,
	}
	go func() {
		defer cancel()
		p.err = c.options.Stream(called.service, serverEnd{p}, info, called.desc.Handler)
		close(p.ended)
	}()
	return clientEnd{p}, nil
}

// pipe is one stream.
type pipe struct {
	channel        *Channel
	transport      *transport
	caller, inside context.Context // of the two ends
	manyRequests   bool

	requests  chan mem.BufferSlice
	closing   sync.Once
	closed    chan struct{} // no more requests come
	responses chan mem.BufferSlice
	taken     chan struct{} // the caller has room for the response, or will have none
	ended     chan struct{} // the service has returned
	err       error         // with which, to be read once it has
}

// clientEnd is the caller's.
type clientEnd struct{ *pipe }

// Header implements grpc.ClientStream.
func (e clientEnd) Header() (metadata.MD, error) { return e.transport.headers(), nil }

// Trailer implements grpc.ClientStream.
func (e clientEnd) Trailer() metadata.MD { return e.transport.trailers() }

// CloseSend implements grpc.ClientStream.
func (e clientEnd) CloseSend() error {
	e.closing.Do(func() { close(e.closed) })
	return nil
}

// Context implements grpc.ClientStream.
func (e clientEnd) Context() context.Context { return e.caller }

// SendMsg implements grpc.ClientStream. Why a stream ended, RecvMsg tells; generated code that sends one request asks that only
// if this does not fail.
func (e clientEnd) SendMsg(m any) error {
	request, err := marshal(m)
	if err != nil {
		return err
	}
	select {
	case e.requests <- request:
		return nil
	case <-e.inside.Done():
		if !e.manyRequests {
			return nil
		}
		return io.EOF
	}
}

// RecvMsg implements grpc.ClientStream.
func (e clientEnd) RecvMsg(m any) error {
	select {
	case response := <-e.responses:
		defer response.Free()
		if err := e.take(response.Len()); err != nil {
			return outcome(e.caller, err)
		}
		return unmarshal(response, m)
	case <-e.caller.Done():
		return outcome(e.caller, e.caller.Err())
	case <-e.ended:
		if e.err == nil {
			return io.EOF
		}
		return outcome(e.caller, e.err)
	}
}

// take takes the memory of a response. Until then its service counts it.
func (e clientEnd) take(bytes int) (err error) {
	if c := callerOf(e.caller); c != nil {
		err = c.Take(e.caller, bytes)
	}
	select {
	case e.taken <- struct{}{}:
	case <-e.inside.Done():
	}
	return err
}

// WithContext is a stream whose service acts in the context given, made of the stream's own by With.
func WithContext(ctx context.Context, stream grpc.ServerStream) grpc.ServerStream {
	return streamWithContext{stream, ctx}
}

type streamWithContext struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s streamWithContext) Context() context.Context { return s.ctx }

// serverEnd is the service's.
type serverEnd struct{ *pipe }

// SetHeader implements grpc.ServerStream.
func (e serverEnd) SetHeader(md metadata.MD) error { return e.transport.SetHeader(md) }

// SendHeader implements grpc.ServerStream.
func (e serverEnd) SendHeader(md metadata.MD) error { return e.transport.SendHeader(md) }

// SetTrailer implements grpc.ServerStream.
func (e serverEnd) SetTrailer(md metadata.MD) { _ = e.transport.SetTrailer(md) } // it cannot fail

// Context implements grpc.ServerStream.
func (e serverEnd) Context() context.Context { return e.inside }

// SendMsg implements grpc.ServerStream.
func (e serverEnd) SendMsg(m any) error {
	response, err := e.channel.write(m)
	if err != nil {
		return err
	}
	select {
	case e.responses <- response:
	case <-e.inside.Done():
		response.Free()
		return e.overdue()
	}
	select {
	case <-e.taken:
		return nil
	case <-e.inside.Done():
		return e.overdue()
	}
}

// RecvMsg implements grpc.ServerStream.
func (e serverEnd) RecvMsg(m any) error {
	select {
	case request := <-e.requests:
		return e.channel.read(request, m)
	case <-e.closed:
		return io.EOF
	case <-e.inside.Done():
		return e.overdue()
	}
}

// overdue is what a service is told whose caller has gone.
func (e serverEnd) overdue() error {
	if errors.Is(e.inside.Err(), context.DeadlineExceeded) {
		return status.Error(codes.DeadlineExceeded, context.DeadlineExceeded.Error())
	}
	return status.Error(codes.Canceled, context.Canceled.Error())
}
