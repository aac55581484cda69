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
