package h2_test

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/quorate/quorate/internal/rpc/h2"
)

// Ensure that a server that drains says so twice, serves requests that were on their way, ignores later ones, and ends the
// connection when the calls have ended.
func TestServer_Drain(t *testing.T) {
	c := dial(t)
	if err := c.request(1, false); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.request(3, false), c.WriteData(3, true, []byte("x"))); err != nil {
		t.Fatal(err)
	}
	c.answer(3)
	drained := make(chan struct{})
	go func() {
		c.server.Drain()
		close(drained)
	}()
	if last := c.leaving(); last != 1<<31-1 {
		t.Errorf("the first GOAWAY names stream %d", last)
	}
	ping := c.pinged()
	if err := errors.Join(c.request(5, false), c.WritePing(true, ping)); err != nil { // before the client read the GOAWAY
		t.Fatal(err)
	}
	if last := c.leaving(); last != 5 {
		t.Errorf("the second GOAWAY names stream %d", last)
	}
	if err := errors.Join(c.request(7, false), c.WriteData(7, true, []byte("ignored")), c.WriteData(5, true, []byte("five")),
		c.WriteData(1, true, []byte("one"))); err != nil {
		t.Fatal(err)
	}
	if got := c.answer(5); string(got) != "five" {
		t.Errorf("got %q", got)
	}
	if got := c.answer(1); string(got) != "one" {
		t.Errorf("got %q", got)
	}
	for {
		f, err := c.ReadFrame()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.Header().Type == http2.FrameHeaders {
			t.Error("a late request was served")
		}
	}
	<-drained
}

// leaving reads up to a GOAWAY.
func (c *client) leaving() (last uint32) {
	c.t.Helper()
	for {
		f, err := c.ReadFrame()
		if err != nil {
			c.t.Fatal(err)
		}
		if g, ok := f.(*http2.GoAwayFrame); ok {
			if g.ErrCode != http2.ErrCodeNo {
				c.t.Errorf("got %v", g.ErrCode)
			}
			return g.LastStreamID
		}
	}
}

// pinged reads up to a ping.
func (c *client) pinged() [8]byte {
	c.t.Helper()
	for {
		f, err := c.ReadFrame()
		if err != nil {
			c.t.Fatal(err)
		}
		if p, ok := f.(*http2.PingFrame); ok && !p.IsAck() {
			return p.Data
		}
	}
}

// slowToClose is a connection that closes only when all of its kind are being closed.
type slowToClose struct {
	net.Conn
	once sync.Once
	all  *sync.WaitGroup
}

func (c *slowToClose) Close() error {
	c.once.Do(c.all.Done)
	c.all.Wait()
	return c.Conn.Close()
}

// slowListener makes its connections slow to close.
type slowListener struct {
	net.Listener
	all sync.WaitGroup
}

func (l *slowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &slowToClose{Conn: c, all: &l.all}, nil
}

// Ensure that connections are closed at once by a server that stops: each may take seconds.
func TestServer_Stop_atOnce(t *testing.T) {
	const conns = 10
	under, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &slowListener{Listener: under}
	l.all.Add(conns)
	s := h2.New(h2.Options{Handler: &echo{}, MaxStreams: 1, MaxHeaderBytes: 4096, StreamWindow: 64 << 10, ConnWindow: 1 << 20,
		Handshake: time.Minute})
	go s.Serve(l)
	for range conns {
		conn, err := net.Dial("tcp", under.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		f := http2.NewFramer(conn, conn)
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadFrame(); err != nil { // the server has it
			t.Fatal(err)
		}
	}
	stopped := make(chan struct{})
	go func() { s.Stop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(20 * time.Second):
		t.Fatal("it closes one connection after the other")
	}
}
