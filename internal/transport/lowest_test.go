package transport

import (
	"testing"
	"time"
)

func TestLowest(t *testing.T) {
	var l Lowest
	at := time.Unix(1000, 0)
	if got, ok := l.Get(at); ok {
		t.Errorf("before any sample: got %v", got)
	}
	for _, row := range []struct {
		name    string
		forward time.Duration
		sample  time.Duration // zero: none
		want    time.Duration // zero: unknown
	}{
		{"the first sample", 0, 50, 50},
		{"a higher one changes nothing", time.Second, 70, 50},
		{"a lower one counts at once", time.Second, 40, 40},
		{"the span before still counts", lowestSpan, 60, 40},
		{"and then no more", lowestSpan, 80, 60},
		{"nor does what is two spans old", lowestSpan, 90, 80},
		{"after a long silence nothing is known", time.Hour, 0, 0},
	} {
		at = at.Add(row.forward)
		if row.sample > 0 {
			l.Add(row.sample, at)
		}
		if got, ok := l.Get(at); got != row.want || ok != (row.want > 0) {
			t.Errorf("%s: got %v, %v, want %v", row.name, got, ok, row.want)
		}
	}
}
