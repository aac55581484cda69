package inproc

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/rpc/incoming"
)

// Options of New.
type Options struct {
	Unary  grpc.UnaryServerInterceptor
	Stream grpc.StreamServerInterceptor
	// Codec is the services' own; callers use protobuf messages.
	Codec encoding.CodecV2
	// MaxRequestBytes and MaxReplyBytes bound one message each.
	MaxRequestBytes, MaxReplyBytes int
}

// Channel is a connection to the services that are registered with it.
type Channel struct {
	options Options
	unary   map[string]unaryMethod // by full name
	streams map[string]streamMethod
}

type unaryMethod struct {
	service any
	handle  grpc.MethodHandler
}

type streamMethod struct {
	service any
	desc    grpc.StreamDesc
}

var (
	_ grpc.ServiceRegistrar    = (*Channel)(nil)
	_ grpc.ClientConnInterface = (*Channel)(nil)
)

// New makes a channel without services.
func New(options Options) *Channel {
	return &Channel{options: options, unary: make(map[string]unaryMethod), streams: make(map[string]streamMethod)}
}

// RegisterService implements grpc.ServiceRegistrar. It must not be called once calls are made.
func (c *Channel) RegisterService(desc *grpc.ServiceDesc, service any) {
	prefix := "/" + desc.ServiceName + "/"
	for _, m := range desc.Methods {
		c.unary[prefix+m.MethodName] = unaryMethod{service, m.Handler}
	}
	for _, s := range desc.Streams {
		c.streams[prefix+s.StreamName] = streamMethod{service, s}
	}
}

// Invoke implements grpc.ClientConnInterface.
func (c *Channel) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	called, ok := c.unary[method]
	if !ok {
		return errUnknown(method)
	}
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	request, err := marshal(args)
	if err != nil {
		return err
	}
	inside, transport := serverContext(ctx, method)
	response, err := c.serve(called, inside, request)
	transport.show(options)
	if err != nil {
		return outcome(ctx, err)
	}
	return c.answer(ctx, response, reply)
}

// serve lets a service answer. A panic of the service ends the process, as it does over a connection.
func (c *Channel) serve(called unaryMethod, inside context.Context, request mem.BufferSlice) (any, error) {
	defer end()
	return called.handle(called.service, inside, func(v any) error { return c.read(request, v) }, c.options.Unary)
}

// end ends the process if the service that was called panics. The caller may be a handler of net/http or a page of the console,
// which catch the panics of their own goroutines, and an invariant that is broken must not be caught.
func end() {
	cause := recover()
	if cause == nil {
		return
	}
	stack := debug.Stack()
	go func() { panic(fmt.Sprintf("%v\n\nin a call from inside:\n%s", cause, stack)) }()
	select {} // the process ends meanwhile
}

// serverContext is what a service sees: the caller's deadline, address and certificates, and what it sent as metadata.
func serverContext(ctx context.Context, method string) (context.Context, *transport) {
	sent, _ := metadata.FromOutgoingContext(ctx)
	t := &transport{method: method}
	ctx = metadata.NewOutgoingContext(incoming.NewContext(ctx, sent), nil)
	ctx = With(ctx, nil) // what the service calls itself is its own
	return grpc.NewContextWithServerTransportStream(ctx, t), t
}

func marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.(proto.Message)
	if !ok {
		return nil, status.Errorf(codes.Internal, "inproc: cannot send a %T", v)
	}
	encoded, err := proto.Marshal(message)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "inproc: %v", err)
	}
	return mem.BufferSlice{mem.SliceBuffer(encoded)}, nil
}

// read decodes a request for a service, or refuses it as gRPC does.
func (c *Channel) read(request mem.BufferSlice, v any) error {
	if size := request.Len(); size > c.options.MaxRequestBytes {
		return status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", size,
			c.options.MaxRequestBytes)
	}
	if err := c.options.Codec.Unmarshal(request, v); err != nil {
		return status.Errorf(codes.Internal, "grpc: error unmarshalling request: %v", err)
	}
	return nil
}

// write encodes what a service answers.
func (c *Channel) write(v any) (mem.BufferSlice, error) {
	encoded, err := c.options.Codec.Marshal(v)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "grpc: error while marshaling: %v", err)
	}
	if size := encoded.Len(); size > c.options.MaxReplyBytes {
		encoded.Free()
		return nil, status.Errorf(codes.ResourceExhausted,
			"quorate: an answer of %d bytes is too large to be passed on (%d at most): ask for less, or by gRPC", size,
			c.options.MaxReplyBytes)
	}
	return encoded, nil
}

// answer hands a response to the caller. Its memory stays counted as long as the caller says (Caller).
func (c *Channel) answer(ctx context.Context, response, reply any) error {
	encoded, err := c.write(response)
	if err != nil {
		return err
	}
	if c := callerOf(ctx); c != nil {
		if err := c.Take(ctx, encoded.Len()); err != nil {
			encoded.Free()
			return outcome(ctx, err)
		}
		c.hold(encoded)
	} else {
		defer encoded.Free()
	}
	return unmarshal(encoded, reply)
}

func unmarshal(encoded mem.BufferSlice, v any) error {
	message, ok := v.(proto.Message)
	if !ok {
		return status.Errorf(codes.Internal, "inproc: cannot receive a %T", v)
	}
	buffer := encoded.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	if err := proto.Unmarshal(buffer.ReadOnlyData(), message); err != nil {
		return status.Errorf(codes.Internal, "inproc: %v", err)
	}
	return nil
}

// outcome is how a call ended for the caller: when its context has ended, that is why, as it is over a connection.
func outcome(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		if cause, ok := status.FromError(context.Cause(ctx)); ok {
			return cause.Err()
		}
		return status.FromContextError(ended).Err()
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.FromContextError(err).Err()
}

func errUnknown(method string) error {
	return status.Errorf(codes.Unimplemented, "unknown method %s", method)
}

type callerKey struct{}

// Caller is how a caller takes the memory of answers.
type Caller struct {
	// Take is told the size of each answer before it is decoded, and may wait. It is called by the goroutine that makes the
	// call, or receives from the stream.
	Take func(ctx context.Context, bytes int) error

	mu   sync.Mutex // calls may be made at once
	held []mem.BufferSlice
}

// With makes the calls under a context those of a caller. The memory of what it is answered stays counted, where it is, until
// Release: it turns that into another form and sends it.
func With(ctx context.Context, caller *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

func (c *Caller) hold(answer mem.BufferSlice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = append(c.held, answer)
}

// Release is to be called when everything was sent.
func (c *Caller) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.held {
		b.Free()
	}
	c.held = nil
}

func callerOf(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}
