package lease

import (
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/kv"
)

// Lessor keeps the leases of one member.
type Lessor struct {
	mu     sync.Mutex
	leases map[kv.LeaseID]*lease // looked up, never walked where the order could show
	ttls   sorted                // ids in ascending order, for listings and Promote

	// At the leader only.
	primary bool
	due     dueHeap
	fresh   []*lease // granted since the last call that told the time: their countdown has not begun
}

// lease is one lease. A deadline in the heap may be older than the lease's own: a renewal only moves the latter.
type lease struct {
	id         kv.LeaseID
	ttlSeconds int64
	keys       map[string]struct{}

	deadline time.Time // zero: the countdown has not begun
	named    bool      // Expired has returned it: a revocation may be on its way
	revoked  bool      // gone from the table; the heap still has to notice
}

// New returns a Lessor without leases, for a member that does not lead.
func New() *Lessor {
	return &Lessor{leases: map[kv.LeaseID]*lease{}}
}

// Exists reports whether id names a lease, expired or not.
func (l *Lessor) Exists(id kv.LeaseID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leases[id] != nil
}

// Len returns the number of leases.
func (l *Lessor) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.leases)
}

// Keys returns the keys that hang on a lease, sorted, and whether the lease exists.
func (l *Lessor) Keys(id kv.LeaseID) ([]string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	le := l.leases[id]
	if le == nil {
		return nil, false
	}
	return le.sortedKeys(), true
}

func (le *lease) sortedKeys() []string {
	keys := make([]string, 0, len(le.keys))
	for key := range le.keys {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Info is what a listing or LeaseTimeToLive tells of a lease.
type Info struct {
	ID         kv.LeaseID
	TTLSeconds int64         // as granted
	Remaining  time.Duration // at the leader; elsewhere the full TTL; never negative
}

// TimeToLive tells how long a lease has left. It returns kv.ErrLeaseNotFound, or ErrNotPrimary at a follower.
func (l *Lessor) TimeToLive(id kv.LeaseID, now time.Time) (Info, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.primary {
		return Info{}, ErrNotPrimary
	}
	l.settle(now)
	le := l.leases[id]
	if le == nil {
		return Info{}, kv.ErrLeaseNotFound
	}
	return le.info(now), nil
}

func (le *lease) ttl() time.Duration {
	return time.Duration(max(le.ttlSeconds, 0)) * time.Second
}

func (le *lease) info(now time.Time) Info {
	info := Info{ID: le.id, TTLSeconds: le.ttlSeconds, Remaining: le.ttl()}
	if !le.deadline.IsZero() {
		info.Remaining = max(le.deadline.Sub(now), 0)
	}
	return info
}

// Leases lists all leases, the first to end first; where two end together, or this member keeps no deadlines, the
// smaller id comes first.
func (l *Lessor) Leases(now time.Time) []Info {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.primary {
		l.settle(now)
	}
	list := make([]Info, 0, len(l.leases))
	for _, id := range l.ttls.ids() {
		list = append(list, l.leases[id].info(now))
	}
	slices.SortStableFunc(list, func(a, b Info) int {
		switch {
		case a.Remaining < b.Remaining:
			return -1
		case a.Remaining > b.Remaining:
			return 1
		}
		return 0
	})
	return list
}
