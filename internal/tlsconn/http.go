package tlsconn

import (
	"context"
	"net"
	"net/http"
)

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
	encrypted, err := Of(conn)
	return err == nil && encrypted != nil
}
