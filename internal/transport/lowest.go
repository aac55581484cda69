package transport

import (
	"sync"
	"time"
)

// lowestSpan is how long a sample counts at least; at most it counts twice as long.
const lowestSpan = 30 * time.Second

// Lowest is the least of the samples of about a minute. The zero value has none. Any goroutine may use it.
type Lowest struct {
	mu          sync.Mutex
	now, before time.Duration // the least of this span and of the span before; zero if there is none
	since       time.Time     // this span
}

// Add takes a sample.
func (l *Lowest) Add(sample time.Duration, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(at)
	if l.now == 0 || sample < l.now {
		l.now = max(sample, 1)
	}
}

// Get returns the least sample; false if there is none.
func (l *Lowest) Get(at time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(at)
	switch {
	case l.now == 0:
		return l.before, l.before > 0
	case l.before == 0:
		return l.now, true
	}
	return min(l.now, l.before), true
}

// turn begins a new span if this one is over.
func (l *Lowest) turn(at time.Time) {
	switch passed := at.Sub(l.since); {
	case passed >= 2*lowestSpan:
		l.now, l.before, l.since = 0, 0, at
	case passed >= lowestSpan:
		l.now, l.before, l.since = 0, l.now, at
	}
}
