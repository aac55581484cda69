package lease

import (
	"time"

	"github.com/quorate/quorate/internal/kv"
)

// namedAgainAfter is the time that the member has to commit the end of a lease before Expired names it once more.
const namedAgainAfter = 2 * time.Second

// Promote starts the deadlines of a new leader: every lease has its full TTL again, and extend on top, because the leader
// before may have renewed it. It visits no lease: Expired gives each one its deadline, and defers some where more would end in
// one second than can be revoked.
func (l *Lessor) Promote(now time.Time, extend time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.primary = true
	l.restart = now.Add(extend)
	l.forget()
	l.waiting = l.all.length()
}

// Demote drops the deadlines: this member leads no more.
func (l *Lessor) Demote() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.primary = false
	l.forget()
}

// forget begins an epoch, without visiting any lease.
func (l *Lessor) forget() {
	l.epoch++
	l.waiting, l.spread, l.due, l.fresh = 0, spread{}, dueHeap{}, pages[*lease]{}
}

// begin gives a lease its deadline, if it has none in this epoch. Counting from now and not from the grant keeps invariant 1
// without a clock in the state machine: now is later.
func (l *Lessor) begin(le *lease, now time.Time) {
	if le.epoch == l.epoch || le.revoked {
		return
	}
	le.epoch, le.named = l.epoch, false
	if le.ending {
		le.deadline = now
	} else if le.granted == l.epoch {
		le.deadline = now.Add(le.ttl())
	} else {
		le.deadline = l.restart.Add(time.Duration(l.spread.place(le.seconds())) * time.Second)
	}
	l.due.push(dueItem{at: le.deadline, lease: le})
}

// settle begins the countdown of some leases that have no deadline yet: of those granted since the last call with a time, then
// of those that existed at Promote.
func (l *Lessor) settle(now time.Time) (looked int) {
	for ; looked < leasesPerHold && l.fresh.length() > 0; looked++ {
		l.begin(*l.fresh.at(l.fresh.length() - 1), now)
		l.fresh.pop()
	}
	l.waiting = min(l.waiting, l.all.length())
	for ; looked < leasesPerHold && l.waiting > 0; looked++ {
		l.waiting--
		l.begin(*l.all.at(l.waiting), now)
	}
	return looked
}

// Renewal is the result of the renewal of a lease.
type Renewal struct {
	TTLSeconds int64 // the TTL, which begins anew
	Err        error // nil, kv.ErrLeaseNotFound or ErrExpired
}

// Renew gives a lease its full TTL again and returns it. The caller must know that it still led at a moment after the renewal
// was asked for. Errors: ErrNotPrimary, kv.ErrLeaseNotFound, ErrExpired.
func (l *Lessor) Renew(id kv.LeaseID, now time.Time) (ttlSeconds int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.primary {
		return 0, ErrNotPrimary
	}
	renewed := l.renew(id, now)
	return renewed.TTLSeconds, renewed.Err
}

// RenewAll is Renew for many leases; the results are in the order of ids. The error is nil or ErrNotPrimary: leadership may end
// in between.
func (l *Lessor) RenewAll(ids []kv.LeaseID, now time.Time) (renewed []Renewal, err error) {
	renewed = make([]Renewal, 0, len(ids))
	l.inHolds(func() (looked int, more bool) {
		if !l.primary {
			renewed, err = nil, ErrNotPrimary
			return 0, false
		}
		for ; looked < leasesPerHold && len(renewed) < len(ids); looked++ {
			renewed = append(renewed, l.renew(ids[len(renewed)], now))
		}
		return looked, len(renewed) < len(ids)
	})
	return renewed, err
}

func (l *Lessor) renew(id kv.LeaseID, now time.Time) Renewal {
	le := l.leases[id]
	if le == nil || le.ending {
		return Renewal{Err: kv.ErrLeaseNotFound}
	}
	l.begin(le, now)
	if le.named || !now.Before(le.deadline) {
		return Renewal{Err: ErrExpired}
	}
	// Two callers may have read the clock in one order and arrive in the other.
	if deadline := now.Add(le.ttl()); deadline.After(le.deadline) {
		le.deadline = deadline
	}
	return Renewal{TTLSeconds: le.ttlSeconds}
}

// Expired returns leases that are past their deadlines, the longest overdue first; the member proposes to revoke them. It
// returns up to leases of them, with up to keys keys together, or a single lease. A lease that still exists after
// namedAgainAfter is returned again, and one that is ending as soon as a part of it is gone. At a follower there are none.
func (l *Lessor) Expired(now time.Time, leases, keys int) []kv.LeaseID {
	var ids []kv.LeaseID
	var epoch uint64
	l.inHolds(func() (looked int, more bool) {
		if epoch == 0 {
			epoch = l.epoch
		}
		if !l.primary || l.epoch != epoch {
			ids = nil // leadership changed in between
			return 0, false
		}
		looked = l.settle(now)
		for ; looked < leasesPerHold; looked++ {
			if len(ids) >= leases || l.due.length() == 0 || l.due.at(0).at.After(now) {
				return looked, false
			}
			if le := l.due.at(0).lease; le.deadline.After(now) { // renewed since
				l.due.at(0).at = le.deadline
			} else {
				if keys -= le.keys; keys < 0 && len(ids) > 0 {
					return looked, false
				}
				le.named = true
				if le.ending {
					le.deadline = now
				}
				ids = append(ids, le.id)
				l.due.at(0).at = now.Add(namedAgainAfter)
			}
			l.due.down(0)
		}
		return looked, true
	})
	return ids
}
