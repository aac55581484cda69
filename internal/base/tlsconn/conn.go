package tlsconn

import (
	"context"
	"crypto/tls"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
)

// secured is a connection that may be encrypted below what others see of it. TLS finishes the handshake; it gives nil
// if the connection is not encrypted.
type secured interface {
	TLS() (*tls.Conn, error)
}

// Of finds the encryption of a connection; nil if there is none.
func Of(c net.Conn) (*tls.Conn, error) {
	for {
		switch outer := c.(type) {
		case *tls.Conn:
			return outer, outer.Handshake()
		case secured:
			return outer.TLS()
		case interface{ NetConn() net.Conn }:
			c = outer.NetConn()
		default:
			return nil, nil
		}
	}
}

// connCredentials tell gRPC how a connection is encrypted that the listener has encrypted already, and which one it is:
// handlers find both by StateOf and ConnOf.
type connCredentials struct {
	credentials.TransportCredentials
}

// Credentials are for grpc.Creds of a server whose listeners encrypt.
func Credentials() credentials.TransportCredentials {
	return connCredentials{insecure.NewCredentials()}
}

// ServerHandshake implements credentials.TransportCredentials.
func (c connCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	encrypted, err := Of(conn)
	if err != nil {
		return nil, nil, err
	}
	known := newConn(conn)
	if encrypted != nil {
		return known, authInfo{credentials.TLSInfo{
			State:          encrypted.ConnectionState(),
			CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
		}, known}, nil
	}
	_, plain, err := c.TransportCredentials.ServerHandshake(conn)
	return known, authInfo{plain, known}, err
}

// Clone implements credentials.TransportCredentials.
func (c connCredentials) Clone() credentials.TransportCredentials {
	return connCredentials{c.TransportCredentials.Clone()}
}

// StateOf returns the encryption of the connection that a gRPC call came by; false if there is none.
func StateOf(ctx context.Context) (tls.ConnectionState, bool) {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return tls.ConnectionState{}, false
	}
	shown := from.AuthInfo
	if known, ok := shown.(authInfo); ok {
		shown = known.AuthInfo
	}
	info, ok := shown.(credentials.TLSInfo)
	return info.State, ok
}
