package portmux_test

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/rpc/portmux"
)

// silentConn is a connection that says nothing until it is closed.
type silentConn struct {
	net.Conn
	from   net.IP
	closed chan struct{}
	ended  atomic.Bool
}

func (c *silentConn) Read([]byte) (int, error) { <-c.closed; return 0, net.ErrClosed }

func (c *silentConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: c.from} }

func (c *silentConn) SetReadDeadline(time.Time) error { return nil }

func (c *silentConn) Close() error {
	if !c.ended.Swap(true) {
		close(c.closed)
	}
	return nil
}

// flood is a listener that accepts what it is given.
type flood struct{ conns chan net.Conn }

func (f *flood) Accept() (net.Conn, error) {
	conn, more := <-f.conns
	if !more {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (f *flood) Close() error   { return nil }
func (f *flood) Addr() net.Addr { return &net.TCPAddr{} }

// Ensure that of many connections that say nothing the oldest are closed, so that there are never more than 1,024, and that
// one that says what it wants is served meanwhile.
func TestMux_Serve_silentConnections(t *testing.T) {
	listener := &flood{conns: make(chan net.Conn)}
	mux := portmux.New(listener)
	var counted atomic.Uint64
	mux.CountSilent(&counted)
	served := make(chan error, 1)
	go func() { served <- mux.Serve() }()
	var silent []*silentConn
	for range 3000 {
		conn := &silentConn{closed: make(chan struct{})}
		silent = append(silent, conn)
		listener.conns <- conn
	}
	ours, theirs := net.Pipe()
	listener.conns <- theirs
	go func() { _, _ = ours.Write([]byte("GET / HTTP/1.1\r\n")) }()
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := mux.HTTP().Accept()
		if err == nil {
			accepted <- conn
		}
	}()
	select {
	case <-accepted:
	case <-time.After(10 * time.Second):
		t.Fatal("a connection that said what it wants was not served")
	}
	for i, conn := range silent[:3000-1024] {
		select {
		case <-conn.closed:
		case <-time.After(10 * time.Second):
			t.Fatalf("connection %d of 3,000 is still kept", i)
		}
	}
	for i, conn := range silent[3000-1023:] {
		if conn.ended.Load() {
			t.Fatalf("connection %d of the last 1,023 was closed", i)
		}
	}
	if counted.Load() < 3000-1024 {
		t.Errorf("%d were counted", counted.Load())
	}
	for _, conn := range silent {
		conn.Close()
	}
	close(listener.conns)
	if err := <-served; err != nil && !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
}

// Ensure that a flood from one address costs that address, and not one that has waited longer.
func TestMux_Serve_silentConnectionsOfOneAddress(t *testing.T) {
	listener := &flood{conns: make(chan net.Conn)}
	mux := portmux.New(listener)
	served := make(chan error, 1)
	go func() { served <- mux.Serve() }()
	slow := &silentConn{from: net.IPv4(10, 0, 0, 1), closed: make(chan struct{})}
	silent := []*silentConn{slow}
	for range 1024 {
		silent = append(silent, &silentConn{from: net.IPv4(10, 0, 0, 2), closed: make(chan struct{})})
	}
	for _, conn := range silent {
		listener.conns <- conn
	}
	select {
	case <-silent[1].closed:
	case <-slow.closed:
		t.Error("the connection of another address was closed")
	case <-time.After(10 * time.Second):
		t.Error("no connection was closed")
	}
	for _, conn := range silent {
		conn.Close()
	}
	close(listener.conns)
	if err := <-served; err != nil {
		t.Fatal(err)
	}
}
