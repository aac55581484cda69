package transport

import (
	"testing"
	"time"
)

func TestTooSlow(t *testing.T) {
	for _, c := range []struct {
		bytes uint64
		in    time.Duration
		slow  bool
	}{
		{0, leastAfter, false}, {0, leastAfter + 1, true}, {40 * leastRate, 39 * time.Second, false},
		{40 * leastRate, 41 * time.Second, true}, {1 << 40, time.Hour, false},
	} {
		if got := tooSlow(c.bytes, c.in); got != c.slow {
			t.Errorf("%d bytes in %v: %v", c.bytes, c.in, got)
		}
	}
}
