package main

import (
	"slices"
	"testing"
	"time"
)

// Ensure that the puts of a change are those that ended after its begin, and began before half a second after its end.
func TestChanging_judge(t *testing.T) {
	base := time.Now()
	at := func(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }
	c := changing{phases: map[string]time.Time{"swap": at(1000), "decided": at(1100), "done": at(1200)}}
	if err := c.judge([]put{
		{at(980), at(995), false}, {at(300), at(400), true}, // before the change
		{at(990), at(1010), false}, {at(1100), at(1140), false}, {at(1150), at(1450), true}, {at(1690), at(1790), false},
		{at(1701), at(1702), false}, {at(1800), at(1900), true}, // afterwards
	}); err != nil {
		t.Fatal(err)
	}
	want := []time.Duration{20 * time.Millisecond, 40 * time.Millisecond, 100 * time.Millisecond}
	if !slices.Equal(c.latencies, want) || c.failed != 1 {
		t.Errorf("latencies %v, %d failed", c.latencies, c.failed)
	}
	if c.pause != 560*time.Millisecond {
		t.Errorf("a pause of %v", c.pause)
	}
	none := changing{phases: map[string]time.Time{}}
	if err := none.judge(nil); err == nil {
		t.Error("a change that never began has times")
	}
}
