package admission

import (
	"context"

	"google.golang.org/grpc"
)

// Registrar registers services at server so that Receive waits for the first message of each call. Streams on which the
// client sends many messages are excepted: clients keep idle streams open, and their number is bounded elsewhere.
func (f *FirstMessages) Registrar(server grpc.ServiceRegistrar) grpc.ServiceRegistrar {
	return timedRegistrar{server, f}
}

type timedRegistrar struct {
	grpc.ServiceRegistrar
	first *FirstMessages
}

// RegisterService implements grpc.ServiceRegistrar.
func (r timedRegistrar) RegisterService(desc *grpc.ServiceDesc, impl any) {
	timed := *desc
	timed.Methods = make([]grpc.MethodDesc, len(desc.Methods))
	for i, m := range desc.Methods {
		timed.Methods[i] = grpc.MethodDesc{MethodName: m.MethodName, Handler: r.method(m.Handler)}
	}
	timed.Streams = make([]grpc.StreamDesc, len(desc.Streams))
	for i, d := range desc.Streams {
		if !d.ClientStreams {
			d.Handler = r.stream(d.Handler)
		}
		timed.Streams[i] = d
	}
	r.ServiceRegistrar.RegisterService(&timed, impl)
}

func (r timedRegistrar) method(handle grpc.MethodHandler) grpc.MethodHandler {
	return func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		return handle(srv, ctx, func(m any) error {
			return r.first.Receive(ctx, func() error { return decode(m) })
		}, interceptor)
	}
}

func (r timedRegistrar) stream(handle grpc.StreamHandler) grpc.StreamHandler {
	return func(srv any, stream grpc.ServerStream) error {
		return handle(srv, timedStream{stream, r.first})
	}
}

// timedStream is a stream with one message from the client.
type timedStream struct {
	grpc.ServerStream
	first *FirstMessages
}

// RecvMsg implements grpc.ServerStream.
func (s timedStream) RecvMsg(m any) error {
	return s.first.Receive(s.Context(), func() error { return s.ServerStream.RecvMsg(m) })
}
