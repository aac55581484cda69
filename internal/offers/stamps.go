package offers

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// Stamps marks the offers of one proposer with when they are due. The zero value marks none.
type Stamps struct {
	ahead time.Duration
	last  uint64
}

// SetAhead says how far ahead the next stamps are; zero: no stamps.
func (s *Stamps) SetAhead(ahead time.Duration) { s.ahead = ahead }

// Stamp marks the offers among messages.
func (s *Stamps) Stamp(now time.Time, messages []consensus.Message) {
	if s.ahead == 0 {
		return
	}
	at := uint64(0)
	for i := range messages {
		if !isOffer(&messages[i]) {
			continue
		}
		if at == 0 {
			at = s.Next(now)
		}
		messages[i].Due = at
	}
}

// Next returns the stamp of an offer that leaves now, in nanoseconds of Unix time. It is larger than the one before.
func (s *Stamps) Next(now time.Time) uint64 {
	s.last = max(s.last+1, uint64(now.Add(s.ahead).UnixNano()))
	return s.last
}

// isOffer reports whether a message offers proposals on the fast path: to a voter or to the leader.
func isOffer(m *consensus.Message) bool {
	return m.Kind == consensus.MsgRecord || m.Kind == consensus.MsgFastPropose
}

// Ahead returns how far ahead a stamp must be so that the leader and the nearest of the others, as many as are needed, have
// received by then what it marks: half of the longest of their round trips, and a little. It returns zero if the distances
// of too few are known.
func Ahead(leader time.Duration, others []time.Duration, needed int) time.Duration {
	farthest := leader
	if needed > 0 {
		if needed > len(others) {
			return 0 // nobody knows how far some of them are
		}
		nearest := slices.Sorted(slices.Values(others))
		farthest = max(farthest, nearest[needed-1])
	}
	return farthest/2 + max(time.Millisecond, farthest/25)
}
