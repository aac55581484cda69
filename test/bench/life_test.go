package main

import (
	"math"
	"testing"
)

// Ensure that the second that was not a whole one does not count as a slow one.
func TestSeconds_lowest(t *testing.T) {
	s := seconds{count: []int{100, 90, 100, 1}, marks: []int{1}}
	if got := s.lowest(); got != 0.9 {
		t.Errorf("the lowest second has %v of the median", got)
	}
	if text := s.String(); text != "100 90* 100" {
		t.Errorf("%q", text)
	}
	if got := (&seconds{count: []int{5}}).lowest(); !math.IsNaN(got) {
		t.Errorf("no whole second has %v", got)
	}
}
