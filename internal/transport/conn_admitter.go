package transport

import (
	"context"
	"net"

	grpcpeer "google.golang.org/grpc/peer"
)

// ConnAdmitter is the remote address of a connection whose listener bounds connections that are not known to be a member's.
type ConnAdmitter interface {
	net.Addr
	// Admit says that the connection is a member's, which has a stream on it until leave is called.
	Admit() (leave func())
}

// admit tells the admitter of a connection, if it has one, that the stream of ctx is a member's.
func admit(ctx context.Context) (leave func()) {
	if from, ok := grpcpeer.FromContext(ctx); ok {
		address := from.Addr
		if far, ok := address.(delayedAddr); ok {
			address = far.Addr
		}
		if keeper, ok := address.(ConnAdmitter); ok {
			return keeper.Admit()
		}
	}
	return func() {}
}
