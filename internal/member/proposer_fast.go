package member

import (
	"context"

	fastpath "github.com/quorate/quorate/internal/consensus/proposer"
	"github.com/quorate/quorate/internal/kv"
)

// maxFastBytes is up to which size a command is offered to all voters. A larger one costs more time on the wire, twice to each
// voter, than a round trip saves, and fills their pools.
const maxFastBytes = 64 << 10

// mayBeFast reports whether the result of a command can be known before it is applied, it changes keys, and whether that pays.
// Everything else answers with a revision that depends on what comes before it.
func mayBeFast(payload []byte) bool { return len(payload) <= maxFastBytes && kv.ChangesKeys(payload) }

// won completes proposals that are decided and not applied here yet. They stay in their session, and are repeated under
// their id, until they are: the session must not end before.
func (p *proposer) won(wins []fastpath.Win) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range wins {
		q := p.named(wins[i].Proposal)
		if q == nil || q.committed || q.done == nil {
			continue
		}
		result, err := kv.DecodeResult(wins[i].Reply)
		if err != nil {
			continue // a leader of a later version: its entry will say the same
		}
		done := q.done
		q.done = nil
		p.open--
		p.openBytes -= len(q.payload)
		tell(done, result, RouteFast)
	}
}

// renew proposes under another id what was given up because nobody could tell whether it was still wanted. It has never
// been executed and never will be under the old one.
func (p *proposer) renew(q *proposal) {
	q.committed = true
	if q.done == nil {
		return
	}
	again := &proposal{kind: q.kind, payload: q.payload, done: q.done, waiting: true, onlyOnce: q.onlyOnce}
	q.done, q.renewed = nil, again
	p.queue = append(p.queue, again)
}

// latest follows a proposal to the id that it has now.
func (q *proposal) latest() *proposal {
	for q.renewed != nil {
		q = q.renewed
	}
	return q
}

// Route says by which way an answer came.
type Route string

// The routes.
const (
	RouteLeader   Route = "leader"   // the leader said that it committed, or this member leads
	RouteInferred Route = "inferred" // this member counted that it committed
	RouteFast     Route = "fast"     // a superquorum holds it at its revision
)

type routeKey struct{}

// WantRoute returns a context under which Propose tells by which way the answer came.
func WantRoute(ctx context.Context) (context.Context, *Route) {
	route := new(Route)
	return context.WithValue(ctx, routeKey{}, route), route
}

func noteRoute(ctx context.Context, route Route) {
	if wanted, ok := ctx.Value(routeKey{}).(*Route); ok {
		*wanted = route
	}
}

// tell completes a proposal, and says how to those who want to know.
func tell(done Completion, result kv.Result, route Route) {
	if r, wants := done.(interface{ Via(route Route) }); wants {
		r.Via(route)
	}
	done.Complete(result, nil)
}
