package answers

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/base/linked"
	"github.com/quorate/quorate/internal/base/tlsconn"
)

const (
	// DefaultTotalBytes is Budget's total if none is given.
	DefaultTotalBytes = 1 << 30
	// DefaultMostBytes bounds one answer if no other bound is given.
	DefaultMostBytes = 512 << 20

	// An answer is in memory twice while it is encoded: as it was collected, and as it is sent (but see Encoded).
	copies = 2
	// freeBytes of each account are not counted: nearly all answers are smaller and need no lock.
	freeBytes = 64 << 10
	// stepBytes is the least amount by which an account grows.
	stepBytes = 256 << 10
)

// Budget is the memory for answers. Its methods may be called by several goroutines.
type Budget struct {
	total, most int64
	refused     atomic.Uint64

	mu      sync.Mutex
	used    int64
	hosts   map[string]*host // hosts that have bytes, or wait for some
	waiting int
	queue   linked.List[host] // hosts that wait; the next in turn comes first
	large   *share            // the one share that exceeds what its host may have

	unread  linked.List[share] // answers being sent; the one whose client has read nothing for longest comes first
	sweeper *time.Timer        // nil if none is set
	ended   uint64             // answers given up because they were not read
}

// host is a client host.
type host struct {
	name    string
	bytes   int64     // of its accounts
	waiting []*waiter // in the order of arrival
	place   linked.Place[host]
}

// share is the part of the budget that an account has. It is an object of its own, so that a cleanup gives it back if the
// account becomes garbage without a Release.
type share struct {
	budget *Budget
	host   string

	// Guarded by budget.mu.
	bytes  int64
	conn   *tlsconn.Conn // on which the answer is sent; nil before
	forget func() bool   // stops the release at the end of conn
	moved  time.Time     // when the client last read a part
	place  linked.Place[share]
}

// waiter waits for bytes. granted is closed when its share has them.
type waiter struct {
	share   *share
	bytes   int64
	granted chan struct{}
}

// New returns a budget of totalBytes, and of mostBytes for one answer. Zero or less means the default.
func New(totalBytes, mostBytes int64) *Budget {
	b := &Budget{total: totalBytes, most: mostBytes, hosts: make(map[string]*host)}
	if b.total <= 0 {
		b.total = DefaultTotalBytes
	}
	if b.most <= 0 {
		b.most = DefaultMostBytes
	}
	return b
}

// MostBytes bounds one answer.
func (b *Budget) MostBytes() int64 { return b.most }

// UsedBytes is the sum of all accounts now.
func (b *Budget) UsedBytes() int64 { return b.Stats().UsedBytes }

// Stats are a Budget's use and counts.
type Stats struct {
	UsedBytes     int64  // of all accounts
	MostHostBytes int64  // of the host that has the most
	Waiting       int    // callers that wait for bytes
	Refused       uint64 // answers too large, or given up while they waited for bytes or could not wait
	Unread        uint64 // answers given up because their clients did not read them
}

// Stats returns the use and the counts now.
func (b *Budget) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Stats{UsedBytes: b.used, Waiting: b.waiting, Refused: b.refused.Load(), Unread: b.ended}
	for _, h := range b.hosts {
		s.MostHostBytes = max(s.MostHostBytes, h.bytes)
	}
	return s
}

// fits reports whether a share may have more bytes. A host may have as much as is free then for others: alone it gets half of
// the budget, n hosts get one part of n+1 each, and the next host finds as much (Choudhury and Hahne, Dynamic Queue Length
// Thresholds for Shared-Memory Packet Switches, 1998). The only answer of a host may be larger, one at a time.
func (b *Budget) fits(h *host, s *share, more int64) bool {
	free := b.total - b.used - more
	return free >= h.bytes+more || free >= 0 && h.bytes == s.bytes && (b.large == nil || b.large == s)
}

// give adds bytes to a share, with the lock held. The caller has checked fits.
func (b *Budget) give(h *host, s *share, bytes int64) {
	h.bytes += bytes
	s.bytes += bytes
	b.used += bytes
	if b.large == nil && h.bytes > b.total-b.used {
		b.large = s
	}
}

// take gives bytes of a share back, with the lock held.
func (b *Budget) take(s *share, bytes int64) {
	h := b.hosts[s.host]
	h.bytes -= bytes
	s.bytes -= bytes
	b.used -= bytes
	b.forget(h)
	if b.large == s && (s.bytes == 0 || h.bytes <= b.total-b.used) {
		b.large = nil
	}
}

// host returns the host with a name, and creates it if need be.
func (b *Budget) host(name string) *host {
	h := b.hosts[name]
	if h == nil {
		h = &host{name: name}
		b.hosts[name] = h
	}
	return h
}

// forget drops a host without bytes and waiters.
func (b *Budget) forget(h *host) {
	if h.bytes == 0 && len(h.waiting) == 0 {
		delete(b.hosts, h.name)
	}
}

func (s *share) release() {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.forget != nil {
		s.forget()
		s.forget = nil
	}
	s.place.Remove()
	if s.bytes > 0 {
		b.take(s, s.bytes)
		b.admit()
	}
}

// left notes that a waiter of a host waits no more.
func (b *Budget) left(h *host) {
	b.waiting--
	if len(h.waiting) == 0 {
		h.place.Remove()
	}
}

// admit grants bytes to waiters whose bytes fit. A host that got some is next after all others.
func (b *Budget) admit() {
	for h := b.queue.First(); h != nil; {
		next := h.place.Next()
		if w := h.waiting[0]; b.fits(h, w.share, w.bytes) {
			h.waiting = h.waiting[1:]
			b.give(h, w.share, w.bytes)
			close(w.granted)
			if b.left(h); len(h.waiting) > 0 {
				h.place.Remove()
				b.queue.PushBack(&h.place, h)
				if next == nil {
					next = h
				}
			}
		}
		h = next
	}
}
