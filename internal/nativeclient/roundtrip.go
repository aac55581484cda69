package nativeclient

import "time"

// RoundTrip measures the round trip to a member by the pings of a stream. The zero value has measured nothing.
type RoundTrip struct {
	asked    int64 // when the last ping was sent, in Unix nanoseconds: also its id
	distance time.Duration
}

// Ping returns the id of a ping that leaves now.
func (r *RoundTrip) Ping(now time.Time) uint64 {
	r.asked = now.UnixNano()
	return uint64(r.asked)
}

// Answered updates the round trip if a status answers the last ping. It reports whether that is the first measurement. A
// shorter round trip counts at once, a longer one by a quarter.
func (r *RoundTrip) Answered(now time.Time, ping uint64) (first bool) {
	if ping == 0 || uint64(r.asked) != ping {
		return false
	}
	took, before := time.Duration(now.UnixNano()-r.asked), r.distance
	if before != 0 && took > before {
		took = before + (took-before)/4
	}
	r.distance = max(1, took)
	return before == 0
}

// Distance is the round trip; zero if it is not measured yet.
func (r *RoundTrip) Distance() time.Duration { return r.distance }
