package admission

import (
	"context"

	"google.golang.org/grpc/peer"
)

// Caller is where a call comes from.
type Caller struct {
	Host    string // as Host returns it: what bounds count for one host
	Address string // of the connection
}

// CallerOf returns where a gRPC call comes from; the zero Caller if that is unknown.
func CallerOf(ctx context.Context) Caller {
	from, ok := peer.FromContext(ctx)
	if !ok || from.Addr == nil {
		return Caller{}
	}
	return Caller{Host: Host(from.Addr), Address: from.Addr.String()}
}
