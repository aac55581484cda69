package command

import (
	"context"
	"net"
)

// Dialer opens a connection to a member's address, for a program that reaches members by another road than its own network.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// dialerKey is the key of a dialer in a context.
type dialerKey struct{}

// WithDialer lets commands that run with the context open all connections to members by d. Encryption is d's: the commands
// get no endpoints with https://. Commands of etcdctl do not know d.
func WithDialer(ctx context.Context, d Dialer) context.Context {
	return context.WithValue(ctx, dialerKey{}, d)
}

// dialerOf is the dialer of a context; nil: there is none.
func dialerOf(ctx context.Context) Dialer {
	d, _ := ctx.Value(dialerKey{}).(Dialer)
	return d
}

// DialMember opens a connection to an address by the dialer of the context, or directly.
func DialMember(ctx context.Context, network, address string) (net.Conn, error) {
	if d := dialerOf(ctx); d != nil {
		return d(ctx, network, address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}
