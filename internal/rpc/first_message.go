package rpc

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/firstmsg"
)

const (
	firstMessagePatience = 30 * time.Second
	// While more than maxFirstMessages calls wait for their request, it may take no longer than crowdedPatience.
	maxFirstMessages = 512
	crowdedPatience  = 2 * time.Second
)

var defaultFirstMessage = firstmsg.Limits{
	Patience: firstMessagePatience, Crowd: maxFirstMessages, Crowded: crowdedPatience,
}

// firstMessages ends calls whose request does not arrive: a client may send a part of it and then nothing. Streams on which
// the client sends many messages are left alone: clients keep idle ones, and those are bounded in number.
type firstMessages struct {
	*firstmsg.Gate
	closing sync.Once
	stop    chan struct{}
	running sync.WaitGroup
}

func newFirstMessages(limits firstmsg.Limits) *firstMessages {
	f := &firstMessages{Gate: firstmsg.New(limits), stop: make(chan struct{})}
	f.running.Go(func() { f.Run(f.stop) })
	return f
}

func (f *firstMessages) close() {
	f.closing.Do(func() { close(f.stop) })
	f.running.Wait()
}

// timing registers services whose calls have a deadline for their request.
func (f *firstMessages) timing(server grpc.ServiceRegistrar) grpc.ServiceRegistrar {
	return timedRegistrar{server, f.Gate}
}

type timedRegistrar struct {
	grpc.ServiceRegistrar
	gate *firstmsg.Gate
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
	return func(srv any, ctx context.Context, decode func(any) error, gate grpc.UnaryServerInterceptor) (any, error) {
		return handle(srv, ctx, func(m any) error {
			return r.gate.Receive(ctx, func() error { return decode(m) })
		}, gate)
	}
}

func (r timedRegistrar) stream(handle grpc.StreamHandler) grpc.StreamHandler {
	return func(srv any, stream grpc.ServerStream) error {
		return handle(srv, timedStream{stream, r.gate})
	}
}

// timedStream is a stream with one message from the client.
type timedStream struct {
	grpc.ServerStream
	gate *firstmsg.Gate
}

// RecvMsg implements grpc.ServerStream.
func (s timedStream) RecvMsg(m any) error {
	return s.gate.Receive(s.Context(), func() error { return s.ServerStream.RecvMsg(m) })
}

func (c *collector) collectFirstMessages(e *emitter) {
	waiting, ended := c.s.first.Counts()
	e.gauge("quorate_calls_unsent", "Calls whose request has not arrived yet.", float64(waiting))
	e.counter("quorate_calls_unsent_ended_total", "Calls that were ended because their request did not arrive.", float64(ended))
}
