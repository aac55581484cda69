package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/transport"
)

// boaster is a process that answers a method with something large, and counts the bytes that left.
type boaster struct {
	url  string
	sent atomic.Int64
}

type boastListener struct {
	net.Listener
	b *boaster
}

func (l boastListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return boastConn{c, l.b}, err
}

type boastConn struct {
	net.Conn
	b *boaster
}

func (c boastConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.b.sent.Add(int64(n))
	return n, err
}

// boastCodec takes bytes as they are.
type boastCodec struct{}

func (boastCodec) Name() string                      { return "boast" }
func (boastCodec) Marshal(v any) ([]byte, error)     { return *v.(*[]byte), nil }
func (boastCodec) Unmarshal(src []byte, v any) error { *v.(*[]byte) = src; return nil }

func boast(t *testing.T, answered string, answer func(s grpc.ServerStream) error) *boaster {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &boaster{url: "http://" + l.Addr().String()}
	server := grpc.NewServer(grpc.ForceServerCodec(boastCodec{}), grpc.MaxSendMsgSize(1<<30), grpc.WriteBufferSize(0),
		grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
			var asked []byte
			if err := s.RecvMsg(&asked); err != nil {
				return err
			}
			if method, _ := grpc.MethodFromServerStream(s); method != answered {
				return status.Error(codes.Unavailable, "not now")
			}
			return answer(s)
		}))
	served := make(chan error, 1)
	go func() { served <- server.Serve(boastListener{l, b}) }()
	t.Cleanup(func() {
		server.Stop()
		<-served
	})
	return b
}

// large answers with one message.
func large(bytes int) func(s grpc.ServerStream) error {
	return func(s grpc.ServerStream) error {
		answer := make([]byte, bytes)
		return s.SendMsg(&answer)
	}
}

const (
	boastBytes = 64 << 20
	// takenBytes is what may come of a false answer to a call, before the caller hangs up: a window of flow control and more.
	takenBytes = 1 << 20
)

// Ensure that an answer which is larger than an honest one is false, and is not read.
func TestCallURL_largeAnswer(t *testing.T) {
	m := start(t, 1)
	for _, row := range []struct {
		name string
		ask  func(ctx context.Context, url string) error
	}{
		{"find", func(ctx context.Context, url string) error {
			presence, err := transport.Find(ctx, transport.Options{}, identity.Sought{Cluster: cluster, Member: 2}, url)
			if presence != transport.Unsure {
				return fmt.Errorf("found %v: %w", presence, err)
			}
			return err
		}},
		{"another call", func(ctx context.Context, url string) error {
			_, err := m.CallURL(ctx, url, "greet", nil, 100)
			return err
		}},
		{"confirm", func(ctx context.Context, url string) error {
			m.SetPeers([]consensus.Member{{ID: 2, PeerURLs: []string{url}}})
			if m.Confirmed(2) {
				return fmt.Errorf("confirmed")
			}
			return nil
		}},
	} {
		b := boast(t, "/quorate.Peer/Call", large(boastBytes))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := row.ask(ctx, b.url)
		cancel()
		if err != nil && !strings.Contains(err.Error(), "a false answer") {
			t.Errorf("%s: %v", row.name, err)
		}
		if sent := b.sent.Load(); sent > takenBytes {
			t.Errorf("%s: %d bytes were read of a false answer", row.name, sent)
		}
	}
}

// Ensure that an answer may be as large as its caller says, and no larger, at a URL and of a peer.
func TestTransport_Call_mostAnswer(t *testing.T) {
	a, b := start(t, 1), answering(start(t, 2))
	acquaint(a, b)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, row := range []struct {
		bytes int
		want  error
	}{{0, nil}, {1 << 10, nil}, {1<<10 + 1, transport.ErrLargeAnswer}, {1 << 20, transport.ErrLargeAnswer}} {
		body := make([]byte, row.bytes)
		if _, err := a.Call(ctx, 2, "echo", body, 1<<10); !errors.Is(err, row.want) {
			t.Errorf("%d bytes of a peer: got %v, want %v", row.bytes, err, row.want)
		}
		if _, err := a.CallURL(ctx, b.url, "echo", body, 1<<10); !errors.Is(err, row.want) {
			t.Errorf("%d bytes at a URL: got %v, want %v", row.bytes, err, row.want)
		}
	}
}

// Ensure that what comes instead of a hello is not read beyond what a stream brings back.
func TestTransport_largeHello(t *testing.T) {
	b := boast(t, "/quorate.Peer/Messages", large(boastBytes))
	m := start(t, 1)
	m.SetPeers([]consensus.Member{{ID: 2, PeerURLs: []string{b.url}}})
	m.logs.await(t, "peer refused", "instead of a hello")
	_ = m.Close()
	const streams, tries, window = 2, 2, 4 << 20
	if sent := b.sent.Load(); sent > streams*tries*2*window {
		t.Errorf("%d bytes were read instead of a hello", sent)
	}
}

// Ensure that the headers of an answer are bounded: what is compressed in them grows thousandfold.
func TestCallURL_largeHeaders(t *testing.T) {
	b := boast(t, "/quorate.Peer/Call", func(s grpc.ServerStream) error {
		s.SetTrailer(metadata.Pairs("a", strings.Repeat("x", 1<<20)))
		return status.Error(codes.Unavailable, "later")
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := transport.CallURL(ctx, transport.Options{}, b.url, "greet", nil, mostAnswer)
	if err == nil || strings.Contains(err.Error(), "later") {
		t.Errorf("1 MiB of headers are taken: %v", err)
	}
}

// Ensure that what a member sends back over a stream to one that is not its peer is bounded at its sender, so that the stream
// goes on.
func TestTransport_largeWayBack(t *testing.T) {
	a, b := start(t, 1), start(t, 2)
	a.SetPeers([]consensus.Member{{ID: 2, PeerURLs: []string{b.url}}})
	a.waitFor(2)
	for i, row := range []struct {
		bytes   int
		arrives bool
	}{{4<<20 - 1<<10, true}, {4 << 20, false}, {8 << 20, false}, {100, true}} {
		index := consensus.Index(10 * (i + 1))
		b.Send([]consensus.Message{appendMessage(2, 1, index, row.bytes)})
		if !row.arrives {
			continue
		}
		if m := a.next(); m.Match.Index != index {
			t.Errorf("got what follows entry %d, want %d", m.Match.Index, index)
		}
	}
	none(t, a.lost, "a lost stream of")
}
