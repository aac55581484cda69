package sim

import "time"

// event is something that happens at a virtual time. Events of one time happen in the order in which they were made.
type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

// agenda is the one heap of everything that is going to happen.
type agenda struct {
	now    time.Duration
	seq    uint64
	events []event
}

// Now returns the virtual time since the world began.
func (a *agenda) Now() time.Duration { return a.now }

// After makes f happen once d has passed.
func (a *agenda) After(d time.Duration, f func()) {
	a.seq++
	a.events = append(a.events, event{a.now + max(d, 0), a.seq, f})
	at := len(a.events) - 1
	for at > 0 {
		up := (at - 1) / 2
		if !a.before(at, up) {
			break
		}
		a.events[at], a.events[up] = a.events[up], a.events[at]
		at = up
	}
}

func (a *agenda) before(i, j int) bool {
	x, y := &a.events[i], &a.events[j]
	return x.at < y.at || (x.at == y.at && x.seq < y.seq)
}

// next takes the earliest event, moves the time to it and returns what is to be done; nil at the end of the world.
func (a *agenda) next() func() {
	last := len(a.events) - 1
	if last < 0 {
		return nil
	}
	first := a.events[0]
	a.events[0] = a.events[last]
	a.events[last] = event{}
	a.events = a.events[:last]
	for at := 0; ; {
		least := at
		if l := 2*at + 1; l < last && a.before(l, least) {
			least = l
		}
		if r := 2*at + 2; r < last && a.before(r, least) {
			least = r
		}
		if least == at {
			break
		}
		a.events[at], a.events[least] = a.events[least], a.events[at]
		at = least
	}
	a.now = first.at
	return first.do
}
