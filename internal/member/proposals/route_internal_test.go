package proposals

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that just the entries after the first index of a span, up to the second, count as inferred, of as many spans as are kept.
func TestInferredSpans_routeOf(t *testing.T) {
	var s inferredSpans
	for i := range len(s.spans) + 1 {
		s.note(consensus.Index(10*i), consensus.Index(10*i+5))
	}
	last := consensus.Index(10 * len(s.spans))
	for index, want := range map[consensus.Index]Route{
		1: RouteLeader, 10: RouteLeader, 11: RouteInferred, 15: RouteInferred, 16: RouteLeader, last: RouteLeader, last + 1: RouteInferred,
	} {
		if got := s.routeOf(index); got != want {
			t.Errorf("entry %d was told by the route %s, want %s", index, got, want)
		}
	}
}
