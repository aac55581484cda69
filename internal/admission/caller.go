package admission

import (
	"context"

	"google.golang.org/grpc/peer"
)

// Caller is where a call comes from.
type Caller struct {
	Host    string // that bounds of one host count, as Host gives it
	Address string // of the connection
}

// CallerOf finds where a gRPC call comes from; the zero Caller if nobody knows.
func CallerOf(ctx context.Context) Caller {
	from, ok := peer.FromContext(ctx)
	if !ok || from.Addr == nil {
		return Caller{}
	}
	return Caller{Host: Host(from.Addr), Address: from.Addr.String()}
}
