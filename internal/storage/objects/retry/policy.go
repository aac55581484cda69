package retry

import "time"

// Policy says how often an operation is tried, and how long the pauses are.
type Policy struct {
	Attempts int           // in all; 1 tries once
	First    time.Duration // the longest pause before the second attempt; it doubles from there on
	Most     time.Duration // the longest pause of all
}

// Pause returns how long to wait after an attempt has failed, counted from 1, and whether there is another. The pause lies
// between half of the longest one and all of it, by a random number from [0, 1): many that were refused at once do not come
// back at once.
func (p Policy) Pause(attempt int, random float64) (pause time.Duration, again bool) {
	if attempt >= p.Attempts {
		return 0, false
	}
	longest := p.First
	for i := 1; i < attempt && longest < p.Most; i++ {
		longest *= 2
	}
	longest = min(longest, p.Most)
	return longest/2 + time.Duration(random*float64(longest/2)), true
}
