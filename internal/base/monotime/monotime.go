package monotime

import (
	"sync/atomic"
	"time"
)

var begun = time.Now()

// Atomic is a time, or unset, which the zero Atomic is.
type Atomic struct {
	after atomic.Int64 // nanoseconds after begun, one more from begun on: zero is unset
}

func encode(t time.Time) int64 {
	after := int64(t.Sub(begun))
	if after >= 0 {
		after++
	}
	return after
}

// Set sets the time.
func (a *Atomic) Set(t time.Time) { a.after.Store(encode(t)) }

// SetIfUnset sets the time if it is unset.
func (a *Atomic) SetIfUnset(t time.Time) { a.after.CompareAndSwap(0, encode(t)) }

// Unset makes it unset.
func (a *Atomic) Unset() { a.after.Store(0) }

// Get returns the time; false if it is unset.
func (a *Atomic) Get() (t time.Time, set bool) {
	after := a.after.Load()
	if after == 0 {
		return time.Time{}, false
	}
	return decode(after), true
}

func decode(after int64) time.Time {
	if after > 0 {
		after--
	}
	return begun.Add(time.Duration(after))
}

// Advance sets the time to now and returns true if it is unset or period has passed since. Of several callers at once one is
// told so.
func (a *Atomic) Advance(now time.Time, period time.Duration) bool {
	after := a.after.Load()
	if after != 0 && now.Sub(decode(after)) < period {
		return false
	}
	return a.after.CompareAndSwap(after, encode(now))
}
