package k8s

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// written is a mutation as its writer knows it.
type written struct {
	revision int64 // zero: the outcome is unknown
	key      string
	deleted  bool
	sum      uint32 // of what was put
}

// ledger keeps what was written to one resource, for the comparison with what watchers were told. It is safe for concurrent
// use until the comparison.
type ledger struct {
	mu      sync.Mutex
	acked   []written
	unknown []written
	granted map[int64]time.Time // event leases: the earliest time at which each may expire
	expired map[int64]time.Time // when the first watcher was told of the end of a lease's keys
}

func newLedger() *ledger {
	return &ledger{granted: map[int64]time.Time{}, expired: map[int64]time.Time{}}
}

func (l *ledger) ack(w written) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked = append(l.acked, w)
}

// doubt notes a mutation that may have happened, or may happen yet.
func (l *ledger) doubt(w written) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.revision = 0
	l.unknown = append(l.unknown, w)
}

func (l *ledger) grant(lease int64, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.granted[lease] = end
}

func (l *ledger) expire(lease int64, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.expired[lease]; !known {
		l.expired[lease] = at
	}
}

// close puts what was acknowledged into the order of revisions, each once: a mutation whose outcome was unknown at first may
// have been found out twice.
func (l *ledger) close() {
	slices.SortFunc(l.acked, func(a, b written) int {
		return cmp.Or(cmp.Compare(a.revision, b.revision), cmp.Compare(a.key, b.key))
	})
	l.acked = slices.Compact(l.acked)
}

// compare finds what was acknowledged and not told, and what was told and not written, up to a revision.
func (l *ledger) compare(c *Checker, to int64) {
	due := map[place]written{}
	for _, w := range l.acked {
		due[place{w.revision, w.key}] = w
	}
	possible := map[written]int{}
	for _, w := range l.unknown {
		possible[w]++
	}
	ends := map[int64]int64{} // revisions at which leases ended
	for _, s := range c.told {
		at := place{s.revision, s.key}
		w, found := due[at]
		switch {
		case found:
			delete(due, at)
			if w.deleted != s.deleted || !w.deleted && w.sum != s.sum {
				c.violations.addf("%s: revision %d of %s is not what was written", c.name, s.revision, s.key)
			}
		case s.deleted && s.lease != 0:
			l.ended(c, s, ends)
		default:
			l.doubted(c, s, possible)
		}
	}
	for _, w := range l.acked {
		if _, missing := due[place{w.revision, w.key}]; missing && w.revision <= to && !c.skipped(w.revision) {
			c.violations.addf("%s: revision %d of %s was acknowledged and is lost", c.name, w.revision, w.key)
		}
	}
}

// place is where a mutation stands in the history.
type place struct {
	revision int64
	key      string
}

// ended checks an event that no writer caused but the end of a lease: not before its time, and for all its keys at once.
func (l *ledger) ended(c *Checker, s seen, ends map[int64]int64) {
	end, granted := l.granted[s.lease]
	first, known := ends[s.lease]
	ends[s.lease] = s.revision
	switch at := l.expired[s.lease]; {
	case !granted:
		c.violations.addf("%s: revision %d of %s had lease %x, which nobody was granted", c.name, s.revision, s.key, s.lease)
	case at.Before(end):
		c.violations.addf("%s: lease %x of %s ended %v too early", c.name, s.lease, s.key, end.Sub(at))
	case known && first != s.revision:
		c.violations.addf("%s: the keys of lease %x are deleted at revisions %d and %d", c.name, s.lease, first, s.revision)
	}
}

func (l *ledger) doubted(c *Checker, s seen, possible map[written]int) {
	w := written{key: s.key, deleted: s.deleted}
	if !s.deleted {
		w.sum = s.sum
	}
	if possible[w] == 0 {
		c.violations.addf("%s: revision %d of %s (deleted: %v) is told, and nobody wrote it", c.name, s.revision, s.key,
			s.deleted)
		return
	}
	possible[w]--
}
