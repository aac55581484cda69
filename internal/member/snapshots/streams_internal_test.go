package snapshots

import (
	"context"
	"errors"
	"testing"
)

// Ensure that a snapshot that was stopped ends with the reason, and no other does.
func TestStreams_stop(t *testing.T) {
	var s streams
	s.stop(1) // nothing is on its way
	old, endOld := s.begin(t.Context(), 1)
	first, endFirst := s.begin(t.Context(), 1)
	second, endSecond := s.begin(t.Context(), 2)
	defer endSecond()
	endOld()
	s.stop(1)
	if !errors.Is(context.Cause(first), errUseless) || errors.Is(context.Cause(old), errUseless) || second.Err() != nil {
		t.Errorf("causes: %v, %v, %v", context.Cause(old), context.Cause(first), context.Cause(second))
	}
	endFirst()
	if len(s.byID) != 1 {
		t.Errorf("%d are remembered, want the second", len(s.byID))
	}
}
