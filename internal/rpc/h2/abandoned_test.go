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

// hosts writes down what was abandoned.
type hosts struct {
	mu     sync.Mutex
	closed bool // to all connections
	added  chan int
}

func (h *hosts) Admits(net.Addr) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.closed
}

func (h *hosts) Add(_ net.Addr, requests int) { h.added <- requests }

// Ensure that it is noted what a client leaves unanswered, or unread, that drops its connection, and one that is sent away; and
// that a host which may not connect is sent away at once.
func TestServer_abandoned(t *testing.T) {
	h, e := &hosts{added: make(chan int, 10)}, &echo{}
	s := h2.New(h2.Options{
		Handler: e, MaxStreams: maxStreams, MaxHeaderBytes: 4096, StreamWindow: 64 << 10, ConnWindow: 1 << 20,
		Handshake: time.Minute, Hosts: h, Socket: func(c net.Conn) h2.Socket { return c.(*net.TCPConn) },
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		s.Stop()
		serving.Wait()
	})
	open := func() *client {
		c := dialAt(t, l.Addr().String())
		c.echo, c.server = e, s
		return c
	}
	for _, row := range []struct {
		name string
		do   func(c *client) error
		want int
	}{
		{"nothing", func(*client) error { return nil }, 0},
		{"requests without an answer", func(c *client) error {
			err := errors.Join(c.request(1, false, "silent", "1"), c.request(3, false, "silent", "1"))
			return errors.Join(err, c.handled())
		}, 2},
		{"an answer that was read", func(c *client) error {
			err := errors.Join(c.request(1, false), c.WriteData(1, true, []byte("x")))
			c.answer(1)
			return err
		}, 0},
		{"an answer that is not read", func(c *client) error {
			err := errors.Join(c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10}),
				c.request(1, true, "large", "1"))
			return errors.Join(err, c.handled())
		}, 1},
	} {
		c := open()
		if err := row.do(c); err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		c.conn.Close()
		if got := <-h.added; got != row.want {
			t.Errorf("%s: %d requests were abandoned, want %d", row.name, got, row.want)
		}
	}
	c := open()
	sent := c.flood(func(uint32) error { return c.WritePriority(1, http2.PriorityParam{StreamDep: 3}) })
	if code := c.goAway(); code != http2.ErrCodeEnhanceYourCalm {
		t.Errorf("got %v", code)
	}
	c.conn.Close()
	<-sent
	if got := <-h.added; got != 256 {
		t.Errorf("a flood counts as %d requests", got)
	}
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	calmed := s.Calmed()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(timeLimit)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("a host that may not connect: %v", err)
	}
	if got := s.Calmed(); got != calmed+1 {
		t.Errorf("%d connections were sent away, want %d", got, calmed+1)
	}
}

// handled waits until the server has read what was sent.
func (c *client) handled() error {
	if err := c.WritePing(false, [8]byte{1}); err != nil {
		return err
	}
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return err
		}
		if p, ok := f.(*http2.PingFrame); ok && p.IsAck() {
			return nil
		}
	}
}
