package proposals

import "github.com/quorate/quorate/internal/consensus"

// Route says by which way an answer came.
type Route string

// The routes.
const (
	RouteLeader   Route = "leader"   // the leader said that it committed, or this member leads
	RouteInferred Route = "inferred" // this member counted that it committed
	RouteFast     Route = "fast"     // a superquorum holds it at its revision
)

// inferredSpans are the stretches of the log that this member found committed by itself lately, for those who ask by which
// way they were answered.
type inferredSpans struct {
	spans [16]inferredSpan
	next  int
}

// inferredSpan is the entries after one index up to another.
type inferredSpan struct{ after, upto consensus.Index }

func (s *inferredSpans) note(after, upto consensus.Index) {
	s.spans[s.next%len(s.spans)] = inferredSpan{after, upto}
	s.next++
}

func (s *inferredSpans) routeOf(index consensus.Index) Route {
	for _, span := range s.spans {
		if index > span.after && index <= span.upto {
			return RouteInferred
		}
	}
	return RouteLeader
}
