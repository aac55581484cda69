package check

import (
	"time"

	"github.com/quorate/quorate/internal/kv"
)

// Leases checks that no lease ends early: the system proposes its revocation only when the time to live has passed since the
// begin of the last renewal that was acknowledged to a client. A clock that runs fast shortens it by its drift, and by no more.
type Leases struct {
	held   map[kv.LeaseID]*tenure
	byHand map[kv.LeaseID]bool
	// Drift is how much faster than true time a member's clock may run.
	drift float64
	// EndBytes bounds the keys that a revocation deletes at once; zero: all. Parts counts the revocations that left some keys.
	EndBytes int64
	Parts    uint64
}

type tenure struct {
	ttl   time.Duration
	since time.Duration // begin of the last acknowledged renewal
}

func (l *Leases) init() {
	l.held = map[kv.LeaseID]*tenure{}
	l.byHand = map[kv.LeaseID]bool{}
}

// ClockDrift sets how fast the fastest clock is, as a share of true time.
func (l *Leases) ClockDrift(share float64) { l.drift = share }

// Renewed records that a grant or keep-alive that began at a time was answered with a time to live.
func (l *Leases) Renewed(id kv.LeaseID, began, ttl time.Duration) {
	t := l.held[id]
	if t == nil {
		t = &tenure{}
		l.held[id] = t
	}
	t.since, t.ttl = max(t.since, began), ttl
}

// Revoking records that a client itself asks to revoke a lease.
func (l *Leases) Revoking(id kv.LeaseID) { l.byHand[id] = true }

// applying is called with every command before its first application.
func (l *Leases) applying(s *Suite, c *kv.Command) {
	if c.LeaseRevoke == nil || l.byHand[c.LeaseRevoke.ID] {
		return
	}
	t := l.held[c.LeaseRevoke.ID]
	if t == nil {
		return // granted, but not acknowledged to a client
	}
	least := t.since + time.Duration(float64(t.ttl)/(1+l.drift))
	if now := s.Now(); now < least {
		s.report("lease-early", "lease %x ended %v early: it was renewed at %v for %v",
			int64(c.LeaseRevoke.ID), least-now, t.since, t.ttl)
	}
}
