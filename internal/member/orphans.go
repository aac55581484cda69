package member

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// orphans are the sessions of removed members, and since when this leader knows of them. What such a member was asked for
// just before may still be on its way, for an election timeout at most; then the session and its results are retired.
type orphans map[consensus.SessionID]time.Time

// ripe notes what is new among now, forgets what is gone, and returns a session that is old enough.
func (o orphans) ripe(now []consensus.SessionID, at time.Time, age time.Duration) (ripe consensus.SessionID, found bool) {
	seen := make(map[consensus.SessionID]bool, len(now))
	for _, id := range now {
		seen[id] = true
		since, known := o[id]
		if !known {
			o[id] = at
		} else if !found && at.Sub(since) >= age {
			ripe, found = id, true
		}
	}
	for id := range o {
		if !seen[id] {
			delete(o, id)
		}
	}
	return ripe, found
}

// retireOrphans retires one session of a removed member, if there is one that nobody can need any more.
func (m *Member) retireOrphans(known orphans) {
	machine, release := m.Machine()
	now := machine.Orphans()
	release()
	if len(now) == 0 && len(known) == 0 {
		return
	}
	id, found := known.ripe(now, m.options.Clock.Now(), 3*m.electionTimeout())
	if !found {
		return
	}
	ctx, cancel := context.WithTimeout(m.stopping, promotePatience)
	defer cancel()
	command := kv.Command{SessionRetire: &kv.SessionRetireOp{Member: uint64(id.Member), Number: id.Number}}
	if _, err := m.Propose(ctx, &command); err != nil && m.stopping.Err() == nil {
		m.logger.Debug("could not retire a session of a removed member yet", "peer", id.Member.String(), "err", err)
	}
}
