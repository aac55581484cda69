package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/limits/admission"
)

// Ensure that members take turns, and that those which accept nothing are asked last until their pause is over.
func TestMembers_inOrder(t *testing.T) {
	m := newMembers(places("a", "b", "c"), time.Minute)
	now := time.Unix(1000, 0)
	expect := func(what string, want ...string) {
		t.Helper()
		if got := m.inOrder(now); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	expect("the first", "a", "b", "c")
	expect("the second", "b", "c", "a")
	if !m.note("c", false, now) || m.note("c", false, now) {
		t.Error("a failure is news once")
	}
	expect("c is avoided", "a", "b", "c")
	m.note("a", false, now)
	expect("only b is left", "b", "a", "c")
	now = now.Add(time.Minute)
	expect("the pauses are over", "b", "c", "a")
	if !m.note("c", true, now) || m.note("c", true, now) {
		t.Error("that it accepts again is news once")
	}
}

func places(addresses ...string) (out []Endpoint) {
	for _, a := range addresses {
		out = append(out, Endpoint{Address: a})
	}
	return out
}

// Ensure that members of a lower priority come first, and that of equals one of more weight comes first more often, but one
// without weight does, too.
func TestMembers_inOrder_weights(t *testing.T) {
	m := newMembers([]Endpoint{{"far", 2, 0}, {"heavy", 1, 3}, {"light", 1, 1}, {"none", 1, 0}}, time.Minute)
	now := time.Unix(1000, 0)
	drawn := -1
	m.draw = func(n int) int { return min(drawn, n-1) }
	for i, want := range []string{"none", "light", "heavy", "heavy", "heavy"} {
		drawn = i
		got := m.inOrder(now)
		if len(got) != 4 || got[0] != want || got[3] != "far" {
			t.Errorf("%d is drawn: got %v, want %s first and far last", i, got, want)
		}
	}
	for _, near := range []string{"none", "light", "heavy"} {
		m.note(near, false, now)
	}
	if got := m.inOrder(now); got[0] != "far" {
		t.Errorf("got %v, want far first: the others are avoided", got)
	}
}

// served is a gateway on loopback, before members that are functions.
type served struct {
	*Gateway
	address string
	cancel  context.CancelFunc
	ended   chan error
	log     bytes.Buffer // to be read after the end
}

func serveGateway(t *testing.T, dial func(address string) (net.Conn, error), endpoints ...string) *served {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &served{address: listener.Addr().String(), cancel: cancel, ended: make(chan error, 1)}
	s.Gateway = New(Options{
		Endpoints: places(endpoints...), RetryDelay: time.Hour, Logger: slog.New(slog.NewTextHandler(&s.log, nil)),
		Dial: func(_ context.Context, address string) (net.Conn, error) { return dial(address) },
	})
	go func() { s.ended <- s.Serve(ctx, listener) }()
	t.Cleanup(s.stop)
	return s
}

func (s *served) stop() {
	s.cancel()
	s.ended <- <-s.ended
}

func (s *served) connect(t *testing.T) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// echo returns the gateway's end of a connection to a member that answers with its name and all it was told, once that is over.
func echo(t *testing.T, name string) net.Conn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer listener.Close()
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		told, _ := io.ReadAll(conn)
		_, _ = conn.Write(append([]byte(name+":"), told...))
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// Ensure that a client reaches a member that accepts connections, and that the end of what it sends gets there before the answer.
func TestGateway_Serve(t *testing.T) {
	var mu sync.Mutex
	tried := map[string]int{}
	s := serveGateway(t, func(address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		tried[address]++
		if address == "down" {
			return nil, errors.New("connection refused")
		}
		return echo(t, address), nil
	}, "down", "m2")
	for range 3 {
		client := s.connect(t)
		if _, err := client.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if err := client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(client); err != nil || string(got) != "m2:hello" {
			t.Errorf("got %q, %v, want m2:hello", got, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if tried["down"] != 1 || tried["m2"] != 3 {
		t.Errorf("got %v, want one attempt at the member that is down", tried)
	}
}

// Ensure that members that were all down are tried again at once, that a client is let go if there is none, and that this is
// logged once.
func TestGateway_Serve_allDown(t *testing.T) {
	var mu sync.Mutex
	up := false
	s := serveGateway(t, func(address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if !up {
			return nil, errors.New("connection refused")
		}
		return echo(t, address), nil
	}, "m1", "m2")
	for range 3 {
		if got, err := io.ReadAll(s.connect(t)); err != nil || len(got) != 0 {
			t.Errorf("nobody is there: got %q, %v, want the end", got, err)
		}
	}
	mu.Lock()
	up = true
	mu.Unlock()
	client := s.connect(t)
	_ = client.CloseWrite()
	if got, err := io.ReadAll(client); err != nil || len(got) != len("m1:") {
		t.Errorf("they are back: got %q, %v", got, err)
	}
	s.stop()
	if n := strings.Count(s.log.String(), "no member accepts connections"); n != 1 {
		t.Errorf("got %d complaints, want one:\n%s", n, s.log.String())
	}
}

// Ensure that connections beyond the bound are refused, and that the end of the gateway closes those that are open.
func TestGateway_Serve_bounded(t *testing.T) {
	dialled := make(chan struct{}, 2)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	quiet, _ := net.Pipe() // a member that says nothing
	g := New(Options{Endpoints: places("m1"), Logger: slog.New(slog.DiscardHandler),
		Dial: func(context.Context, string) (net.Conn, error) {
			dialled <- struct{}{}
			return quiet, nil
		}})
	g.bound = admission.NewHostBound(1, 1)
	s := &served{Gateway: g, address: listener.Addr().String(), cancel: cancel, ended: make(chan error, 1)}
	go func() { s.ended <- g.Serve(ctx, listener) }()
	first := s.connect(t)
	<-dialled
	if _, err := s.connect(t).Read(make([]byte, 1)); err == nil {
		t.Error("the second connection: got bytes, want the end")
	}
	s.stop()
	if _, err := first.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the end of the gateway: got %v, want the end of the connection", err)
	}
	if open, refused := g.bound.Counts(); open != 0 || refused != 1 {
		t.Errorf("got %d open and %d refused, want 0 and 1", open, refused)
	}
}
