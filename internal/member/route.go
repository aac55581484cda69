package member

import (
	"context"
	"sync/atomic"

	"github.com/quorate/quorate/internal/member/proposals"
)

type routeKey struct{}

// WantRoute returns a context in which Propose stores the route by which the result came.
func WantRoute(ctx context.Context) (context.Context, *atomic.Pointer[proposals.Route]) {
	route := new(atomic.Pointer[proposals.Route])
	return context.WithValue(ctx, routeKey{}, route), route
}

func noteRoute(ctx context.Context, route proposals.Route) {
	if wanted, ok := ctx.Value(routeKey{}).(*atomic.Pointer[proposals.Route]); ok {
		noted := route       // on the heap only if the caller wants it
		wanted.Store(&noted) // the call may have ended meanwhile
	}
}
