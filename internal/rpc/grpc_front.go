package rpc

import (
	"context"
	"net"
	"runtime"

	"google.golang.org/grpc/stats"

	"github.com/quorate/quorate/internal/base/tlsconn"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/front"
	"github.com/quorate/quorate/internal/rpc/h2"
	"github.com/quorate/quorate/internal/rpc/incoming"
)

// NewFront makes a server like NewGRPCServer, on our own transport. pings are the settings of clients' and of the server's
// pings; calls, unless it is nil, is notified of all calls.
func (s *Services) NewFront(pings h2.Pings, calls stats.Handler) *front.Server {
	return front.New(front.Options{
		HTTP2: h2.Options{
			MaxStreams: s.options.MaxConcurrentStreams, MaxHeaderBytes: maxHeaderBytes,
			StreamWindow: streamWindowBytes, ConnWindow: connWindowBytes, Handshake: handshakeTimeout, Pings: pings,
			Hosts: &s.bounds.abandoned,
			Tab:   func(c net.Conn) h2.Tab { return s.bounds.held.Open(admission.Host(c.RemoteAddr())) },
		},
		Codec: s.codec(), Credentials: tlsconn.Credentials(), Unary: s.unary, Stream: s.stream,
		Prompt: s.kv.promptMethods(), IsPrompt: s.isPrompt, MaxMessage: s.options.maxMessageBytes(), Writers: 1,
		Readers: runtime.GOMAXPROCS(0), Unsent: s.first.Wait,
		Stats: calls, Turns: s.turns,
	})
}

// isPrompt reports whether calls with the metadata of ctx may run without a goroutine: they do not ask for their route, and
// checking their credentials is fast.
func (s *Services) isPrompt(ctx context.Context) bool {
	_, asks := incoming.First(ctx, routeKey)
	return !asks && !s.access.TakesLong(ctx)
}
