package admission

import (
	"net"
	"sync"
)

// Listen returns a listener that bounds the open connections that l accepted. A connection beyond the bound is closed
// at once, so that its client tries another member.
func (b *HostBound) Listen(l net.Listener) net.Listener {
	return &boundedListener{Listener: l, bound: b}
}

// The memory of a connection without requests, in bytes: its socket and a goroutine; with TLS, its state, too; with HTTP, what
// its server adds, and the headers.
const (
	ConnBytes     = 8 << 10
	TLSConnBytes  = 24 << 10
	HTTPConnBytes = 32 << 10
)

// Listen returns a listener whose connections take so many bytes each while they are open. A connection without room is closed
// at once, so that its client tries another member.
func (l *Ledger) Listen(listener net.Listener, bytes int64) net.Listener {
	return &ledgerListener{listener, l, bytes}
}

type ledgerListener struct {
	net.Listener
	ledger *Ledger
	bytes  int64
}

// Accept implements net.Listener.
func (l *ledgerListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tab := l.ledger.Open(Host(conn.RemoteAddr()))
		if tab.takeMore(l.bytes, 0) {
			return &ledgerConn{Conn: conn, tab: tab}, nil
		}
		tab.Close()
		_ = conn.Close()
	}
}

// ledgerConn has bytes of a ledger until it is closed.
type ledgerConn struct {
	net.Conn
	mu     sync.Mutex
	tab    *Tab
	closed bool
}

// Charge takes more bytes for the connection; false if there is no room.
func (c *ledgerConn) Charge(bytes int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed && c.tab.Take(bytes)
}

// Close implements net.Conn.
func (c *ledgerConn) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		c.tab.Close()
	}
	c.mu.Unlock()
	return c.Conn.Close()
}

// NetConn gives what is below, as tls.Conn does.
func (c *ledgerConn) NetConn() net.Conn { return c.Conn }

// Charge takes more bytes for a connection, through what was put around it; false if there is no room. A connection that no
// ledger counts has room.
func Charge(c net.Conn, bytes int64) bool {
	for c != nil {
		switch counted := c.(type) {
		case *ledgerConn:
			return counted.Charge(bytes)
		case interface{ NetConn() net.Conn }:
			c = counted.NetConn()
		default:
			return true
		}
	}
	return true
}

type boundedListener struct {
	net.Listener
	bound *HostBound
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if leave, entered := l.bound.Enter(Host(conn.RemoteAddr())); entered {
			return &boundedConn{Conn: conn, leave: leave}, nil
		}
		_ = conn.Close()
	}
}

// boundedConn counts until it is closed.
type boundedConn struct {
	net.Conn
	once  sync.Once
	leave func()
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	c.once.Do(c.leave)
	return c.Conn.Close()
}

// NetConn gives what is below, as tls.Conn does.
func (c *boundedConn) NetConn() net.Conn { return c.Conn }
