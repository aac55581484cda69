package member

import "time"

// onceAMinute limits log messages that recur: it lets each text through once a minute. The zero value is ready.
type onceAMinute struct{ logged map[string]time.Time }

const (
	logPause       = time.Minute
	maxLoggedTexts = 64 // texts that are remembered
)

// shouldLog reports whether the caller should log a text now.
func (o *onceAMinute) shouldLog(text string, now time.Time) bool {
	if at, found := o.logged[text]; found && now.Sub(at) < logPause {
		return false
	}
	if o.logged == nil || len(o.logged) >= maxLoggedTexts {
		o.logged = map[string]time.Time{}
	}
	o.logged[text] = now
	return true
}
