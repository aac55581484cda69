package member

import "time"

// repeats keeps what is found again and again out of the log: each text is said once a minute. The zero value is ready.
type repeats struct{ said map[string]time.Time }

const (
	repeatPause = time.Minute
	maxRepeats  = 64 // texts that are remembered
)

// again reports whether to say a text now.
func (r *repeats) again(text string, now time.Time) bool {
	if at, said := r.said[text]; said && now.Sub(at) < repeatPause {
		return false
	}
	if r.said == nil || len(r.said) >= maxRepeats {
		r.said = map[string]time.Time{}
	}
	r.said[text] = now
	return true
}
