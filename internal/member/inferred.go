package member

import "github.com/quorate/quorate/internal/consensus"

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

// noteInferred is told of a stretch before its entries are applied.
func (p *proposer) noteInferred(span [2]consensus.Index) {
	p.mu.Lock()
	p.inferred.note(span[0], span[1])
	p.mu.Unlock()
}
