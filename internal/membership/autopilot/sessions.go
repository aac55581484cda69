package autopilot

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// RemovedSessions are the sessions of removed members, and since when this leader knows of them. A proposal that such a member
// was asked for just before may still be on its way, for an election timeout at most; then the session and its results are
// retired. The zero value is ready.
type RemovedSessions struct {
	since map[consensus.SessionID]time.Time
}

// Ripe notes what is new among open, forgets what is gone, and returns a session that has been known for longer than age.
func (r *RemovedSessions) Ripe(
	open []consensus.SessionID, now time.Time, age time.Duration,
) (ripe consensus.SessionID, found bool) {
	kept := make(map[consensus.SessionID]time.Time, len(open))
	for _, id := range open {
		since, known := r.since[id]
		if !known {
			since = now
		} else if !found && now.Sub(since) >= age {
			ripe, found = id, true
		}
		kept[id] = since
	}
	r.since = kept
	return ripe, found
}
