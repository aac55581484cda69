package offers

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// Stamps gives the offers of one proposer the time at which they are due. The zero value gives none.
type Stamps struct {
	ahead time.Duration
	last  uint64
}

// SetAhead says how far ahead the next stamps are; zero: no stamps.
func (s *Stamps) SetAhead(ahead time.Duration) { s.ahead = ahead }

// Stamp sets Due of the offers among messages.
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

// Ahead returns how far ahead a stamp must be so that the leader and the nearest needed of the others have received the
// message when it is due: half of the longest of their round trips, plus a margin. It returns zero if too few round
// trips are known.
func Ahead(leader time.Duration, others []time.Duration, needed int) time.Duration {
	farthest := leader
	if needed > 0 {
		if needed > len(others) {
			return 0 // some round trips are unknown
		}
		nearest := slices.Sorted(slices.Values(others))
		farthest = max(farthest, nearest[needed-1])
	}
	return farthest/2 + max(time.Millisecond, farthest/25)
}
