package lease

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/kv"
)

// leasesPerHold bounds the leases or keys that are visited in one hold of the lock.
const leasesPerHold = 512

// Lessor keeps the leases of one member.
type Lessor struct {
	mu     sync.Mutex
	leases map[kv.LeaseID]*lease
	all    pages[*lease] // the same, unordered: the last one takes the place of a removed one
	moved  uint64        // counts such replacements
	size   int64         // see SizeBytes

	// At the leader only.
	primary bool
	epoch   uint64    // counts Promote: deadlines of another epoch do not count
	restart time.Time // when the TTLs of the leases that existed at Promote begin to run
	waiting int       // the first so many of all may have existed then and not be in due yet
	spread  spread
	due     dueHeap
	fresh   pages[*lease] // granted since the last call with a time: their countdown has not begun

	longest int // most leases or keys visited in one hold, for tests
}

// lease is one lease. A deadline in the heap may be older than the lease's own: a renewal only moves the latter.
type lease struct {
	id         kv.LeaseID
	ttlSeconds int64
	keys       int   // attached to it
	keysLen    int64 // their bytes
	ending     bool  // some of its keys are deleted: see End
	slot       int   // in Lessor.all

	// These count only in the epoch in which they were set.
	epoch    uint64
	deadline time.Time
	named    bool // Expired has returned it: a revocation may be under way
	place    int  // in Lessor.due, or notDue

	granted uint64 // the epoch in which it was granted, if that was under this leader
	revoked bool   // no longer in the table; settle has not removed it from fresh yet
}

const notDue = -1

// New returns a Lessor without leases, for a member that does not lead.
func New() *Lessor {
	return &Lessor{leases: map[kv.LeaseID]*lease{}}
}

// Exists reports whether id names a lease, expired, ending or not.
func (l *Lessor) Exists(id kv.LeaseID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leases[id] != nil
}

// Live reports whether id names a lease that is not ending: keys may be attached to it.
func (l *Lessor) Live(id kv.LeaseID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	le := l.leases[id]
	return le != nil && !le.ending
}

// Ending reports whether a lease has lost a part of its keys, and is to lose the others.
func (l *Lessor) Ending(id kv.LeaseID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	le := l.leases[id]
	return le != nil && le.ending
}

// Len returns the number of leases.
func (l *Lessor) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.leases)
}

// The bytes counted for a lease and for an attached key: a lease takes about as much in memory, and both about as much on disk.
const (
	EachBytes = 256
	keyBytes  = 64
)

// SizeBytes is the sum that the leases count against the store's quota: the same on all members.
func (l *Lessor) SizeBytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// inHolds calls step with the lock held until it returns false, and releases the lock in between. step returns how many leases
// or keys it has visited.
func (l *Lessor) inHolds(step func() (looked int, more bool)) {
	for more := true; more; {
		l.mu.Lock()
		var looked int
		looked, more = step()
		l.longest = max(l.longest, looked)
		l.mu.Unlock()
	}
}

// walk visits the places of a list whose length may change between two holds, from the end on. The last value takes the place
// of a removed one, so no value that stays is missed; one may be visited twice.
func (l *Lessor) walk(length func() int, visit func(at int)) {
	at := -1
	l.inHolds(func() (int, bool) {
		if at < 0 {
			at = length()
		}
		at = min(at, length())
		end := max(at-leasesPerHold, 0)
		looked := at - end
		for at > end {
			at--
			visit(at)
		}
		return looked, at > 0
	})
}

// KeysSize returns the number of keys attached to a lease, and their bytes.
func (l *Lessor) KeysSize(id kv.LeaseID) (keys int, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if le := l.leases[id]; le != nil {
		return le.keys, le.keysLen
	}
	return 0, 0
}

// Info describes a lease for a listing or LeaseTimeToLive.
type Info struct {
	ID         kv.LeaseID
	TTLSeconds int64         // as granted
	Remaining  time.Duration // at the leader; elsewhere the full TTL; never negative
}

// TimeToLive returns the remaining time of a lease. The errors are kv.ErrLeaseNotFound, also for one that is ending, and
// ErrNotPrimary at a follower.
func (l *Lessor) TimeToLive(id kv.LeaseID, now time.Time) (Info, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.primary {
		return Info{}, ErrNotPrimary
	}
	le := l.leases[id]
	if le == nil || le.ending {
		return Info{}, kv.ErrLeaseNotFound
	}
	l.begin(le, now)
	info := l.info(le, now)
	info.Remaining = max(info.Remaining, 0)
	return info, nil
}

func (le *lease) ttl() time.Duration { return time.Duration(le.seconds()) * time.Second }

func (le *lease) seconds() int64 { return max(le.ttlSeconds, 0) }

// info is what there is to say of a lease; what remains of one that is past its deadline is negative.
func (l *Lessor) info(le *lease, now time.Time) Info {
	info := Info{ID: le.id, TTLSeconds: le.ttlSeconds, Remaining: le.ttl()}
	switch {
	case !l.primary:
	case le.epoch == l.epoch:
		info.Remaining = le.deadline.Sub(now)
	case le.granted != l.epoch:
		info.Remaining = l.restart.Add(le.ttl()).Sub(now)
	}
	return info
}

// Leases lists all leases that are not ending, the first to end first; of two that end together, or at a follower, which has no
// deadlines, the smaller id comes first. A lease that is granted or revoked meanwhile may be in the list or not.
func (l *Lessor) Leases(now time.Time) []Info {
	l.mu.Lock()
	list := make([]Info, 0, len(l.leases)+leasesPerHold)
	moved, again := l.moved, false
	l.mu.Unlock()
	l.walk(l.all.length, func(at int) {
		if le := *l.all.at(at); !le.ending {
			list = append(list, l.info(le, now))
		}
		again = l.moved != moved
	})
	if again { // some may have been visited twice
		slices.SortFunc(list, func(a, b Info) int {
			return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(b.Remaining, a.Remaining))
		})
		list = slices.CompactFunc(list, func(a, b Info) bool { return a.ID == b.ID })
	}
	slices.SortFunc(list, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.Remaining, b.Remaining), cmp.Compare(a.ID, b.ID))
	})
	for i := range list {
		list[i].Remaining = max(list[i].Remaining, 0)
	}
	return list
}
