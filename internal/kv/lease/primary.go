package lease

import (
	"time"

	"github.com/quorate/quorate/internal/kv"
)

// namedAgainAfter is how long the member has to commit the end of a lease before Expired names it once more.
const namedAgainAfter = 2 * time.Second

// Promote starts the deadlines of a new leader: every lease has its full TTL again, and extend on top, because a client
// may have been answered by the leader before. It looks at no lease: Expired gives each one its deadline, and puts off
// some where more would end in one second than can be revoked.
func (l *Lessor) Promote(now time.Time, extend time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.primary = true
	l.epoch++
	l.restart, l.waiting, l.spread = now.Add(extend), len(l.all), spread{}
	l.due = nil
	for _, le := range l.fresh { // of an earlier leadership that nobody ended; there is none after Demote
		le.fresh = false
	}
	l.fresh = nil
}

// Demote forgets the deadlines: this member leads no more.
func (l *Lessor) Demote() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.primary = false
	l.epoch++
	l.waiting, l.spread, l.due = 0, spread{}, nil
	for _, le := range l.fresh {
		le.fresh = false
	}
	l.fresh = nil
}

// begin gives a lease its deadline, if it has none in this epoch. Counting from now and not from the grant is what makes
// invariant 1 hold without a clock in the state machine: now is later.
func (l *Lessor) begin(le *lease, now time.Time) {
	if le.epoch == l.epoch || le.revoked {
		return
	}
	le.epoch, le.named = l.epoch, false
	if le.fresh {
		le.fresh, le.deadline = false, now.Add(le.ttl())
	} else {
		le.deadline = l.restart.Add(time.Duration(l.spread.place(le.seconds())) * time.Second)
	}
	l.due.push(dueItem{at: le.deadline, lease: le})
}

// settle begins the countdown of some leases that have no deadline yet: of those granted since the last time anybody
// told the time, then of those that were there at Promote.
func (l *Lessor) settle(now time.Time) (looked int) {
	for ; looked < leasesPerHold && len(l.fresh) > 0; looked++ {
		last := len(l.fresh) - 1
		l.begin(l.fresh[last], now)
		l.fresh[last] = nil
		l.fresh = l.fresh[:last]
	}
	l.waiting = min(l.waiting, len(l.all))
	for ; looked < leasesPerHold && l.waiting > 0; looked++ {
		l.waiting--
		l.begin(l.all[l.waiting], now)
	}
	return looked
}

// Renew gives a lease its full TTL again and returns it. The caller must know that it still leads, as of a moment after
// the renewal was asked for. Errors: ErrNotPrimary, kv.ErrLeaseNotFound, ErrExpired.
func (l *Lessor) Renew(id kv.LeaseID, now time.Time) (ttlSeconds int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.primary {
		return 0, ErrNotPrimary
	}
	le := l.leases[id]
	if le == nil {
		return 0, kv.ErrLeaseNotFound
	}
	l.begin(le, now)
	if le.named || !now.Before(le.deadline) {
		return 0, ErrExpired
	}
	// Two callers may have read the clock in one order and arrive in the other.
	if deadline := now.Add(le.ttl()); deadline.After(le.deadline) {
		le.deadline = deadline
	}
	return le.ttlSeconds, nil
}

// Expired returns up to limit leases whose time is over, the longest overdue first; the member proposes to revoke them.
// One that is still there a while later is named again. At a follower there are none.
func (l *Lessor) Expired(now time.Time, limit int) []kv.LeaseID {
	var ids []kv.LeaseID
	var epoch uint64
	l.inHolds(func() (looked int, more bool) {
		if epoch == 0 {
			epoch = l.epoch
		}
		if !l.primary || l.epoch != epoch {
			ids = nil // leadership came or went in between
			return 0, false
		}
		looked = l.settle(now)
		for ; looked < leasesPerHold; looked++ {
			if len(ids) >= limit || len(l.due) == 0 || l.due[0].at.After(now) {
				return looked, false
			}
			if le := l.due[0].lease; le.deadline.After(now) { // renewed since
				l.due[0].at = le.deadline
			} else {
				le.named = true
				ids = append(ids, le.id)
				l.due[0].at = now.Add(namedAgainAfter)
			}
			l.due.down(0)
		}
		return looked, true
	})
	return ids
}
