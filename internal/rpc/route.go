package rpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/internal/rpc/incoming"
	"github.com/quorate/quorate/internal/rpc/split"
)

// routeKey is the metadata by which a client asks for the route of a write, and gets it: docs/fast-path.md.
const routeKey = "quorate-route"

// routed prepares to send the client the route, if it asks. Tell is called with the answer.
func routed(ctx context.Context) (tell func()) {
	_, asks := incoming.First(ctx, routeKey)
	call := split.Of(ctx)
	if !asks || call == nil {
		return func() {}
	}
	return func() {
		if route := call.Passage().Route; route != "" {
			_ = grpc.SetHeader(ctx, metadata.Pairs(routeKey, string(route))) // it fails only without a client
		}
	}
}
