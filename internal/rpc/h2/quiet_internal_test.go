package h2

import (
	"net"
	"testing"
	"time"
)

// timed is a connection that notes its deadline.
type timed struct {
	net.Conn
	cleared bool
}

func (t *timed) SetDeadline(at time.Time) error {
	t.cleared = at.IsZero()
	return nil
}

func (t *timed) Close() error { return nil }

func quietServer(t *testing.T) (*Server, *conn, *timed) {
	t.Helper()
	s := New(Options{MaxStreams: 1, MaxHeaderBytes: 4096, StreamWindow: 64 << 10, ConnWindow: 1 << 20})
	t.Cleanup(s.Stop)
	under := &timed{}
	c := newConn(s, under)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	return s, c, under
}

// Ensure that a client that is sent nothing may ping for days: what it sends slowly is forgiven, and a flood is not.
func TestServer_watch_forgives(t *testing.T) {
	s, c, _ := quietServer(t)
	now := time.Now()
	for range 10 * maxIdleScore { // a ping each five seconds: a flood only if nothing is ever forgiven
		if err := c.floods.idle(idleFrame); err != nil {
			t.Fatalf("a quiet client was taken for a flood: %v", err)
		}
		now = now.Add(watchInterval)
		s.look(now, watchInterval)
	}
	if n := c.floods.score.Load(); n != 0 {
		t.Errorf("the score is %d", n)
	}
	for range maxIdleScore {
		_ = c.floods.idle(idleFrame)
	}
	s.look(now, watchInterval)
	if n := c.floods.score.Load(); n != maxIdleScore-5*forgiven {
		t.Errorf("after a flood and %v the score is %d", watchInterval, n)
	}
	c.floods.score.Store(-8)
	s.look(now, watchInterval)
	if n := c.floods.score.Load(); n != -8 {
		t.Errorf("what was paid became %d", n)
	}
}

// Ensure that the deadline of a connection that is left is not lifted by a client that begins only then.
func TestConn_greeted_late(t *testing.T) {
	_, c, under := quietServer(t)
	c.leaving.parted = true
	if err := c.handle(&frame{kind: typeSettings}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if under.cleared {
		t.Error("the connection may stay for ever")
	}
	_, c, under = quietServer(t)
	if err := c.handle(&frame{kind: typeSettings}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if !under.cleared {
		t.Error("the handshake goes on")
	}
}
