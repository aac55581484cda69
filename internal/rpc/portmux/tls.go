package portmux

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// securedConn is a connection that may be encrypted below what others see of it. TLS finishes the handshake; it gives nil
// if the connection is not encrypted.
type securedConn interface {
	TLS() (*tls.Conn, error)
}

// tlsOf finds the encryption of a connection, whatever stands around it; nil if there is none.
func tlsOf(c net.Conn) (*tls.Conn, error) {
	for {
		switch outer := c.(type) {
		case *tls.Conn:
			return outer, outer.Handshake()
		case securedConn:
			return outer.TLS()
		case interface{ NetConn() net.Conn }:
			c = outer.NetConn()
		default:
			return nil, nil
		}
	}
}

// connCredentials tell gRPC how a connection is encrypted that the listener has encrypted already: handlers find the
// client's certificates where they would be if gRPC had done it.
type connCredentials struct {
	credentials.TransportCredentials
}

func Credentials() credentials.TransportCredentials {
	return connCredentials{insecure.NewCredentials()}
}

// ServerHandshake implements credentials.TransportCredentials.
func (c connCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, err := tlsOf(conn)
	if err != nil {
		return nil, nil, err
	}
	if secured == nil {
		return c.TransportCredentials.ServerHandshake(conn)
	}
	return conn, credentials.TLSInfo{
		State:          secured.ConnectionState(),
		CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
	}, nil
}

// Clone implements credentials.TransportCredentials.
func (c connCredentials) Clone() credentials.TransportCredentials {
	return connCredentials{c.TransportCredentials.Clone()}
}

type connKey struct{}

// ConnContext lets the handlers see the connection of a request: for http.Server.ConnContext.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// Encrypted tells whether a request came over an encrypted connection.
func Encrypted(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	conn, ok := r.Context().Value(connKey{}).(net.Conn)
	if !ok {
		return false
	}
	secured, err := tlsOf(conn)
	return err == nil && secured != nil
}
