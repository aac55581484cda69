package kernel

import "time"

// Schedule is virtual time and the heap of scheduled events. The zero value is ready.
type Schedule struct {
	now    time.Duration
	seq    uint64
	events []event
}

// event is a function that is called at a virtual time.
type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

// Now returns the virtual time since the world began.
func (s *Schedule) Now() time.Duration { return s.now }

// After schedules f for the time in d.
func (s *Schedule) After(d time.Duration, f func()) {
	s.seq++
	s.events = append(s.events, event{s.now + max(d, 0), s.seq, f})
	at := len(s.events) - 1
	for at > 0 {
		up := (at - 1) / 2
		if !s.before(at, up) {
			break
		}
		s.events[at], s.events[up] = s.events[up], s.events[at]
		at = up
	}
}

func (s *Schedule) before(i, j int) bool {
	x, y := &s.events[i], &s.events[j]
	return x.at < y.at || (x.at == y.at && x.seq < y.seq)
}

// Next removes the earliest event up to end, moves the time to it, and returns its function. It returns nil if there is none.
func (s *Schedule) Next(end time.Duration) func() {
	last := len(s.events) - 1
	if last < 0 || s.events[0].at > end {
		return nil
	}
	first := s.events[0]
	s.events[0] = s.events[last]
	s.events[last] = event{}
	s.events = s.events[:last]
	for at := 0; ; {
		least := at
		if l := 2*at + 1; l < last && s.before(l, least) {
			least = l
		}
		if r := 2*at + 2; r < last && s.before(r, least) {
			least = r
		}
		if least == at {
			break
		}
		s.events[at], s.events[least] = s.events[least], s.events[at]
		at = least
	}
	s.now = first.at
	return first.do
}

// Pass moves the time on to end, if it is not later already. No event may be due before end.
func (s *Schedule) Pass(end time.Duration) { s.now = max(s.now, end) }
