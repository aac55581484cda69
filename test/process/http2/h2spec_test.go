package http2_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/summerwind/h2spec"
	"github.com/summerwind/h2spec/config"

	"github.com/quorate/quorate/internal/rpc/h2"
)

// greeter answers every request with a text, as h2spec expects of a server of HTTP.
type greeter struct{}

func (greeter) Connect(c net.Conn) (net.Conn, any, error) { return c, nil, nil }

func (greeter) Pause(any) {}

func (greeter) Open(s *h2.Stream, _ *h2.Fields, ended bool) h2.Receiver {
	if ended {
		go greet(s)
		return nil
	}
	return body{s}
}

type body struct{ *h2.Stream }

func (b body) Receive(p []byte, ended bool) {
	b.Took(len(p))
	if ended {
		go greet(b.Stream)
	}
}

func (b body) Lost() {}

func greet(s *h2.Stream) {
	s.Headers(h2.AppendField(h2.AppendStatus(nil, 200), "content-type", "text/plain"))
	if s.Send([]h2.Part{{Data: []byte("hello, world")}}) {
		s.Reply(nil, nil, h2.AppendField(nil, "grpc-status", "0"))
	}
	s.Left()
}

// Ensure that h2spec finds nothing.
func TestServer_h2spec(t *testing.T) {
	for name, socket := range map[string]func(net.Conn) h2.Socket{
		"socket": func(c net.Conn) h2.Socket { return c.(*net.TCPConn) }, "stream": nil,
	} {
		t.Run(name, func(t *testing.T) {
			s := h2.New(h2.Options{Handler: greeter{}, MaxStreams: 100, MaxHeaderBytes: 16 << 10, StreamWindow: 1 << 20,
				ConnWindow: 8 << 20, Handshake: 5 * time.Second, Socket: socket})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error)
			go func() { ended <- s.Serve(l) }()
			passed, err := h2spec.Run(&config.Config{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Path: "/",
				Timeout: 2 * time.Second, MaxHeaderLen: 4000})
			if err != nil || !passed {
				t.Errorf("h2spec: passed %v, %v", passed, err)
			}
			s.Stop()
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Errorf("serve: %v", err)
			}
		})
	}
}
