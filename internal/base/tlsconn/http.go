package tlsconn

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

type connKey struct{}

// ConnContext lets the handlers see the connection of a request: for http.Server.ConnContext.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// Encrypted tells whether a request came over an encrypted connection.
func Encrypted(r *http.Request) bool { return StateOfRequest(r) != nil }

// StateOfRequest returns the encryption of the connection that a request came by; nil if there is none.
func StateOfRequest(r *http.Request) *tls.ConnectionState {
	if r.TLS != nil {
		return r.TLS
	}
	conn, ok := r.Context().Value(connKey{}).(net.Conn)
	if !ok {
		return nil
	}
	encrypted, err := Of(conn)
	if err != nil || encrypted == nil {
		return nil
	}
	state := encrypted.ConnectionState()
	return &state
}
