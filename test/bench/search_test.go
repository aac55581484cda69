package main

import (
	"math"
	"testing"
)

// The search ends close below the highest rate that passes, wherever it begins.
func TestBisection(t *testing.T) {
	for _, from := range []float64{10, 440, 2000, 50_000} {
		const limit = 1919
		b := bisection{rate: from}
		steps := 0
		for more := true; more; steps++ {
			more = b.next(b.rate <= limit)
		}
		if b.best > limit || b.best < limit/closest || b.failed <= limit || steps > 40 {
			t.Errorf("from %v: got %v after %d steps, %v failed", from, b.best, steps, b.failed)
		}
	}
	never := bisection{rate: 440}
	for more := true; more; {
		more = never.next(false)
	}
	if never.best != 0 || math.IsNaN(never.rate) {
		t.Errorf("nothing passes: got %+v", never)
	}
}
