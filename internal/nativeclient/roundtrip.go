package nativeclient

import "time"

// RoundTrip measures the round trip to a member, and how much its clock differs, by the pings of a stream. The zero value has
// measured nothing.
type RoundTrip struct {
	asked    time.Time // when the last ping was sent; its id is that time in Unix nanoseconds
	distance time.Duration
	offset   time.Duration
	offsetOf time.Duration // the round trip in which offset was measured; zero: it was not
}

// Ping returns the id of a ping that leaves now.
func (r *RoundTrip) Ping(now time.Time) uint64 {
	r.asked = now
	return uint64(now.UnixNano())
}

// Answered updates the round trip if a status answers the last ping. clock is what the member's clock showed, zero if it does
// not say. It reports whether that is the first measurement. A shorter round trip counts at once, a longer one by a quarter.
func (r *RoundTrip) Answered(now time.Time, ping, clock uint64) (first bool) {
	if ping == 0 || uint64(r.asked.UnixNano()) != ping {
		return false
	}
	took, before := max(1, now.Sub(r.asked)), r.distance
	if clock != 0 && (r.offsetOf == 0 || took <= 2*r.offsetOf) {
		// The clock is wrong by half of the round trip at most, so a slow answer says little (Cristian, 1989).
		r.offset, r.offsetOf = time.Duration(int64(clock)-r.asked.UnixNano())-took/2, took
	} else {
		r.offsetOf *= 2
	}
	r.distance = took
	if before != 0 && took > before {
		r.distance = before + (took-before)/4
	}
	return before == 0
}

// Distance is the round trip; zero if it is not measured yet.
func (r *RoundTrip) Distance() time.Duration { return r.distance }

// Offset is how far the member's clock is ahead of the client's; false if it is not measured yet.
func (r *RoundTrip) Offset() (time.Duration, bool) { return r.offset, r.offsetOf != 0 }
