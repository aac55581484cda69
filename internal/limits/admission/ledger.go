package admission

import (
	"sync"
	"sync/atomic"
)

// Ledger bounds what clients make a process hold, in bytes, for all hosts together and for each host: connections, streams,
// requests, and what is not read. A host may have as much as is free then for others: alone it has half, n hosts an n+1st part
// each, and the host that comes next finds as much (Choudhury and Hahne, Dynamic Queue Length Thresholds for Shared-Memory
// Packet Switches, 1998). A quarter is kept for hosts that have little, in whatever order the others came. Nothing waits here.
type Ledger struct {
	total int64
	small int64       // what each host may have of the reserve
	tight atomic.Bool // a quarter is free at most, or a host was refused and has not given back half since

	mu      sync.Mutex
	used    int64
	hosts   map[string]*accounts
	tabs    Tab // before the first of all that are open, which form a ring
	refused atomic.Uint64

	others atomic.Pointer[func() bool] // nil: this ledger's room alone
}

// accounts are those of one host.
type accounts struct {
	bytes int64
	open  int // tabs
}

// NewLedger returns a ledger of total bytes.
func NewLedger(total int64) *Ledger {
	small := min(total/mostSmallPart, max(smallBytes, total/smallPart))
	l := &Ledger{total: total, small: small, hosts: map[string]*accounts{}}
	l.tabs.next, l.tabs.prev = &l.tabs, &l.tabs
	return l
}

// Tab is what one connection or call has of a Ledger. Its owner calls its methods one at a time.
//
// It takes from the ledger in steps and keeps some of what it gave back, so that a call of a connection that has calls all the
// time needs no lock of the ledger. The ledger takes that back from all tabs when room becomes scarce, and while it is, none
// keeps any.
type Tab struct {
	ledger     *Ledger
	host       *accounts
	name       string
	held       int64
	spare      atomic.Int64 // of the ledger's bytes, beside held
	prev, next *Tab         // of the ledger
}

const (
	// tabStep is by how much a tab grows at least, while room is not scarce.
	tabStep = 8 << 10
	// tabSpare is how much a tab keeps that it does not need, while room is not scarce.
	tabSpare = 64 << 10
	// forcedTimes is how many times what is free a host may have with what it forces.
	forcedTimes = 2
	// reservedPart of all is for hosts that have at most smallBytes, or the smallPart of all if that is more, and never more
	// than mostSmallPart. Hosts that come one after the other each take half of what is free, and would leave nothing. It is
	// enough for a connection, a watch, a renewal and a put.
	reservedPart  = 4
	smallBytes    = 48 << 10
	smallPart     = 256
	mostSmallPart = 16
)

// Open returns an empty tab of a host. Close must be called once.
func (l *Ledger) Open(host string) *Tab {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.hosts[host]
	if h == nil {
		h = &accounts{}
		l.hosts[host] = h
	}
	h.open++
	t := &Tab{ledger: l, host: h, name: host, prev: l.tabs.prev, next: &l.tabs}
	t.prev.next, t.next.prev = t, t
	return t
}

// Take takes bytes; false if there is no room, and then it takes none.
func (t *Tab) Take(bytes int64) bool {
	for {
		spare := t.spare.Load()
		if spare < bytes {
			return t.takeMore(bytes, tabStep)
		}
		if t.spare.CompareAndSwap(spare, spare-bytes) { // else the ledger has taken it
			t.held += bytes
			return true
		}
	}
}

// Force takes bytes of what is there already, for which a host may have twice as much as is free then for others; false if
// there is no room for that either, and then it takes none. Small hosts have the reserve in any case.
func (t *Tab) Force(bytes int64) bool { return t.Take(bytes) || t.grow(bytes, 0, forcedTimes) }

// Give gives bytes back.
func (t *Tab) Give(bytes int64) {
	t.held -= bytes
	// The ledger looks for what is spare after it has said that room is scarce: one of the two sees the other.
	if spare := t.spare.Add(bytes); spare > tabSpare || spare > 0 && t.ledger.tight.Load() {
		t.Settle()
	}
}

// Settle gives back what the tab does not need.
func (t *Tab) Settle() {
	if t.spare.Load() == 0 {
		return
	}
	t.ledger.mu.Lock()
	defer t.ledger.mu.Unlock()
	t.ledger.move(t.host, -t.spare.Swap(0))
}

// Enter is Open and Take for what has its bytes until leave is called, once or more.
func (l *Ledger) Enter(host string, bytes int64) (leave func(), entered bool) {
	t := l.Open(host)
	if !t.takeMore(bytes, 0) {
		t.Close()
		return nil, false
	}
	var once sync.Once
	return func() { once.Do(t.Close) }, true
}

// Tight reports whether room is scarce, in the ledger or elsewhere (AlsoScarce), so that what does not move is to make room.
func (t *Tab) Tight() bool {
	others := t.ledger.others.Load()
	return t.ledger.tight.Load() || others != nil && (*others)()
}

// AlsoScarce has Tight be true while others reports that what clients do not read is scarce elsewhere. It must not wait.
func (l *Ledger) AlsoScarce(others func() bool) { l.others.Swap(&others) }

// Held is what was taken and not given back.
func (t *Tab) Held() int64 { return t.held }

// Close gives everything back.
func (t *Tab) Close() {
	l := t.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.move(t.host, -t.held-t.spare.Swap(0))
	t.held = 0
	t.prev.next, t.next.prev = t.next, t.prev
	if t.host.open--; t.host.open == 0 {
		delete(l.hosts, t.name)
	}
}

// takeMore takes bytes, some of them of the ledger.
func (t *Tab) takeMore(bytes, step int64) bool {
	if t.grow(bytes, step, 1) {
		return true
	}
	t.ledger.refused.Add(1)
	return false
}

// grow takes bytes of what is spare and of the ledger: step at least while room is not scarce. A host may have so many times as
// much as is free then.
func (t *Tab) grow(bytes, step, times int64) bool {
	l := t.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		need := bytes - t.spare.Load()
		more := max(need, step)
		if l.tight.Load() || !l.room(t.host, more, times) {
			more = need
		}
		switch {
		case l.room(t.host, more, times):
			t.held += bytes
			t.spare.Add(more - bytes)
			l.move(t.host, more)
			return true
		case l.tight.Load():
			return false
		}
		l.scarce()
	}
}

// room reports whether a host would have at most so many times what is free with more bytes, and leave the reserve; or no more
// than a small one, for which the reserve is. The ledger is locked.
func (l *Ledger) room(h *accounts, more, times int64) bool {
	free, has := l.total-l.used-more, h.bytes+more
	return free >= l.total/reservedPart && free*times >= has || free >= 0 && has <= l.small
}

// move gives bytes to a host, or takes them. The ledger is locked.
func (l *Ledger) move(h *accounts, bytes int64) {
	h.bytes += bytes
	l.used += bytes
	switch free := l.total - l.used; {
	case free <= l.total/4:
		l.scarce()
	case free > l.total*5/8: // a host that was refused has at most three eighths now
		l.tight.Store(false)
	}
}

// scarce says that room is scarce, and takes from all tabs what they do not need. The ledger is locked.
func (l *Ledger) scarce() {
	if l.tight.Swap(true) {
		return
	}
	for t := l.tabs.next; t != &l.tabs; t = t.next {
		spare := t.spare.Swap(0)
		t.host.bytes -= spare
		l.used -= spare
	}
}

// Limit is what all may have together.
func (l *Ledger) Limit() int64 { return l.total }

// LedgerStats is what a Ledger has lent.
type LedgerStats struct {
	Bytes         int64
	MostHostBytes int64
	Refused       uint64
}

// Stats tells it.
func (l *Ledger) Stats() LedgerStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := LedgerStats{Bytes: l.used, Refused: l.refused.Load()}
	for _, h := range l.hosts {
		s.MostHostBytes = max(s.MostHostBytes, h.bytes)
	}
	return s
}
