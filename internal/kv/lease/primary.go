package lease

import (
	"time"

	"github.com/quorate/quorate/internal/kv"
)

// namedAgainAfter is how long the member has to commit the end of a lease before Expired names it once more.
const namedAgainAfter = 2 * time.Second

// Promote starts the deadlines of a new leader: every lease has its full TTL again, and extend on top, because a client
// may have been answered by the leader before.
func (l *Lessor) Promote(now time.Time, extend time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.primary = true
	l.fresh = nil
	l.due = make(dueHeap, 0, len(l.leases))
	for _, id := range l.ttls.ids() {
		le := l.leases[id]
		le.named = false
		le.deadline = now.Add(le.ttl() + extend)
		l.due = append(l.due, dueItem{at: le.deadline, lease: le})
	}
	l.due.build()
}

// Demote forgets the deadlines: this member leads no more.
func (l *Lessor) Demote() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.primary = false
	l.due, l.fresh = nil, nil
	for _, le := range l.leases {
		le.deadline, le.named = time.Time{}, false
	}
}

// IsPrimary reports whether this member keeps deadlines.
func (l *Lessor) IsPrimary() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.primary
}

// settle begins the countdown of what was granted since the last time anybody told the time. Counting from now and not
// from the grant is what makes law 1 hold without a clock in the state machine: now is later.
func (l *Lessor) settle(now time.Time) {
	for _, le := range l.fresh {
		if !le.revoked {
			le.deadline = now.Add(le.ttl())
			l.due.push(dueItem{at: le.deadline, lease: le})
		}
	}
	clear(l.fresh)
	l.fresh = l.fresh[:0]
}

// Renew gives a lease its full TTL again and returns it. The caller must know that it still leads, as of a moment after
// the renewal was asked for. Errors: ErrNotPrimary, kv.ErrLeaseNotFound, ErrExpired.
func (l *Lessor) Renew(id kv.LeaseID, now time.Time) (ttlSeconds int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.primary {
		return 0, ErrNotPrimary
	}
	l.settle(now)
	le := l.leases[id]
	if le == nil {
		return 0, kv.ErrLeaseNotFound
	}
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.primary {
		return nil
	}
	l.settle(now)
	var ids []kv.LeaseID
	for len(l.due) > 0 && len(ids) < limit && !l.due[0].at.After(now) {
		first := &l.due[0]
		le := first.lease
		switch {
		case le.revoked:
			l.due.pop()
			continue
		case le.deadline.After(now): // renewed since
			first.at = le.deadline
		default:
			le.named = true
			ids = append(ids, le.id)
			first.at = now.Add(namedAgainAfter)
		}
		l.due.down(0)
	}
	return ids
}

// NextDue returns the earliest time at which Expired may have something to say, so that the loop can sleep until then.
// It may be too early (a renewal has moved the lease), never too late.
func (l *Lessor) NextDue(now time.Time) (at time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.primary {
		return time.Time{}, false
	}
	l.settle(now)
	if len(l.due) == 0 {
		return time.Time{}, false
	}
	return l.due[0].at, true
}
