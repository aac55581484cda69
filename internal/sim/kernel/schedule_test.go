package kernel

import (
	"slices"
	"testing"
	"time"
)

// Ensure that events happen in the order of their times, and of one time in the order in which they were scheduled, also those
// that events schedule.
func TestSchedule_Next(t *testing.T) {
	var s Schedule
	var got []int
	add := func(d time.Duration, n int) { s.After(d, func() { got = append(got, n) }) }
	for n, d := range []time.Duration{5, 3, 5, 1, -1, 3, 9} {
		add(d*time.Second, n)
	}
	s.After(3*time.Second, func() { add(0, 7) })
	for do := s.Next(5 * time.Second); do != nil; do = s.Next(5 * time.Second) {
		do()
	}
	if want := []int{4, 3, 1, 5, 7, 0, 2}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if s.Now() != 5*time.Second {
		t.Errorf("now is %v", s.Now())
	}
}

func TestSchedule_Pass(t *testing.T) {
	var s Schedule
	s.Pass(time.Second)
	s.Pass(time.Millisecond)
	if s.Now() != time.Second {
		t.Errorf("now is %v", s.Now())
	}
	happened := false
	s.After(time.Second, func() { happened = true })
	if s.Next(s.Now()+time.Second-1) != nil {
		t.Error("it happens too early")
	}
	s.Next(2 * time.Second)()
	if !happened || s.Now() != 2*time.Second {
		t.Errorf("at %v: %t", s.Now(), happened)
	}
}
