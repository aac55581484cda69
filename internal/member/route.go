package member

import (
	"context"

	"github.com/quorate/quorate/internal/proposals"
)

type routeKey struct{}

// WantRoute returns a context under which Propose tells by which way the answer came.
func WantRoute(ctx context.Context) (context.Context, *proposals.Route) {
	route := new(proposals.Route)
	return context.WithValue(ctx, routeKey{}, route), route
}

func noteRoute(ctx context.Context, route proposals.Route) {
	if wanted, ok := ctx.Value(routeKey{}).(*proposals.Route); ok {
		*wanted = route
	}
}
