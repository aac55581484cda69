package tlsconn

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// Conn is the connection that gRPC calls come by.
type Conn struct {
	net.Conn
	once  sync.Once
	ended context.Context
	end   context.CancelFunc
}

func newConn(c net.Conn) *Conn {
	conn := &Conn{Conn: c}
	conn.ended, conn.end = context.WithCancel(context.Background())
	return conn
}

// Close implements net.Conn. gRPC closes every connection that has ended.
func (c *Conn) Close() (err error) {
	c.once.Do(func() {
		err = c.Conn.Close()
		c.end()
	})
	return err
}

// NetConn gives what is below, as tls.Conn does.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Context ends when the connection is closed.
func (c *Conn) Context() context.Context { return c.ended }

// authInfo is what gRPC keeps of a connection for each call.
type authInfo struct {
	credentials.AuthInfo
	conn *Conn
}

// ConnOf returns the connection that a gRPC call came by; nil if it came from inside.
func ConnOf(ctx context.Context) *Conn {
	if from, ok := peer.FromContext(ctx); ok {
		if info, ok := from.AuthInfo.(authInfo); ok {
			return info.conn
		}
	}
	return nil
}
