package rpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/rpc/incoming"
)

// routeKey is the metadata by which a client asks for the route of a write, and gets it: docs/fast-path.md.
const routeKey = "quorate-route"

// routed prepares to send the client the route, if it asks. Tell is called with the answer.
func routed(ctx context.Context) (_ context.Context, tell func()) {
	if _, asks := incoming.First(ctx, routeKey); !asks {
		return ctx, func() {}
	}
	asked := ctx
	ctx, route := member.WantRoute(ctx)
	return ctx, func() {
		if r := route.Load(); r != nil && *r != "" {
			_ = grpc.SetHeader(asked, metadata.Pairs(routeKey, string(*r))) // it fails only without a client
		}
	}
}
