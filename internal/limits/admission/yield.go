package admission

import (
	"net"
	"runtime"
)

// yieldBytes is how many bytes are read of a connection before other goroutines run.
const yieldBytes = 8 << 10

// Yielding returns a listener whose connections let other goroutines run after each 8 KiB that are read, and after each write,
// which is an answer or a part of one. A goroutine that reads a client which always has more to be read, and skips what comes
// or answers it, would have a processor for 10 ms at a time otherwise, and so would those of its other connections: 8 KiB are
// 250 requests.
func Yielding(l net.Listener) net.Listener { return yieldingListener{l} }

type yieldingListener struct{ net.Listener }

// Accept implements net.Listener.
func (l yieldingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &yieldingConn{Conn: c, yield: runtime.Gosched}, nil
}

// yieldingConn has one reader at a time, and one writer, which may be another goroutine.
type yieldingConn struct {
	net.Conn
	yield func()
	read  int // since it yielded
}

// Read implements net.Conn.
func (c *yieldingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.read += n; c.read >= yieldBytes {
		c.read = 0
		c.yield()
	}
	return n, err
}

// Write implements net.Conn.
func (c *yieldingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.yield()
	return n, err
}

// NetConn gives what is below, as tls.Conn does.
func (c *yieldingConn) NetConn() net.Conn { return c.Conn }
