package k8s

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// cacheChecks are those of API servers, which compare their caches with the store.
type cacheChecks struct {
	every      time.Duration
	violations *Violations
	lists      *lists
	step       *atomic.Pointer[recorder]
}

// run checks what a watch was told at the pace of kube-apiserver: each pause is between the period and half as long again.
// API servers have run for long when a session begins, so the first check is due at some moment of such a pause.
func (c *cacheChecks) run(ctx context.Context, w *watch) {
	for first := true; ; first = false {
		wait := c.every + rand.N(c.every/2+1)
		if first {
			wait = rand.N(wait)
		}
		pause(ctx, wait)
		if ctx.Err() != nil {
			return
		}
		due, step := time.Now(), c.step.Load()
		_, err := c.once(ctx, w)
		if step == nil || ctx.Err() != nil {
			continue // before the first step, or after the last one
		}
		step.done(Check, due, err)
	}
}

// once lists what the store had at the last revision that a watch was told all up to, as an API server does which compares
// its cache with the store: exactly at that revision, in parts of 10,000 keys, streamed where the server can. The
// comparison is made in the end, with all watches of the resource.
func (c *cacheChecks) once(ctx context.Context, w *watch) (at int64, err error) {
	limited, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	p := pages{resource: w.resource, revision: w.reached.Load(), limit: checkLimit}
	l, err := stream(limited, p, w.client, nil)
	if status.Code(err) == codes.Unimplemented {
		l, err = walk(limited, p, pager(w.client, w.resource, checkLimit), nil)
	}
	switch {
	case errors.Is(err, errWrong):
		c.violations.addf("%s: %v: %v", w.checker.name, Check, err)
	case err == nil:
		c.lists.keep(l)
	}
	return p.revision, err
}
