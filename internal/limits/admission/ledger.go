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
	refused uint64
}

// accounts are those of one host.
type accounts struct {
	bytes int64
	open  int // tabs
}

// NewLedger returns a ledger of total bytes.
func NewLedger(total int64) *Ledger {
	small := min(total/mostSmallPart, max(smallBytes, total/smallPart))
	return &Ledger{total: total, small: small, hosts: map[string]*accounts{}}
}

// Tab is what one connection or call has of a Ledger. Its owner calls its methods one at a time.
//
// It takes from the ledger in steps and keeps some of what it gave back, so that a call of a connection that has calls all the
// time needs no lock of the ledger.
type Tab struct {
	ledger *Ledger
	host   *accounts
	name   string
	held   int64
	of     int64 // the ledger's bytes that this tab has: at least held
}

const (
	// tabStep is by how much a tab grows at least, if there is room.
	tabStep = 8 << 10
	// tabSpare is how much a tab keeps that it does not need, while there is room.
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
	return &Tab{ledger: l, host: h, name: host}
}

// Take takes bytes; false if there is no room, and then it takes none.
func (t *Tab) Take(bytes int64) bool {
	if t.held+bytes > t.of && !t.grow(t.held+bytes-t.of) {
		return false
	}
	t.held += bytes
	return true
}

// Force takes bytes of what is there already, for which a host may have twice as much as is free then for others; false if
// there is no room for that either, and then it takes none. Small hosts have the reserve in any case.
func (t *Tab) Force(bytes int64) bool {
	if t.Take(bytes) {
		return true
	}
	l := t.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if more := t.held + bytes - t.of; l.room(t.host, more, forcedTimes) {
		t.held += bytes
		l.move(t, more)
		return true
	}
	return false
}

// Give gives bytes back.
func (t *Tab) Give(bytes int64) {
	t.held -= bytes
	if spare := t.of - t.held; spare > tabSpare || spare > 0 && t.ledger.tight.Load() {
		t.Settle()
	}
}

// Settle gives back what the tab does not need.
func (t *Tab) Settle() {
	if t.of == t.held {
		return
	}
	t.ledger.mu.Lock()
	defer t.ledger.mu.Unlock()
	t.ledger.move(t, t.held-t.of)
}

// Enter is Open and Take for what has its bytes until leave is called, once or more.
func (l *Ledger) Enter(host string, bytes int64) (leave func(), entered bool) {
	t := l.Open(host)
	if !t.takeExactly(bytes) {
		t.Close()
		return nil, false
	}
	var once sync.Once
	return func() { once.Do(t.Close) }, true
}

// Tight reports whether room is scarce in the ledger, so that what does not move is to make room.
func (t *Tab) Tight() bool { return t.ledger.tight.Load() }

// Held is what was taken and not given back.
func (t *Tab) Held() int64 { return t.held }

// Close gives everything back.
func (t *Tab) Close() {
	t.held = 0
	l := t.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.move(t, -t.of)
	if t.host.open--; t.host.open == 0 {
		delete(l.hosts, t.name)
	}
}

func (t *Tab) takeExactly(bytes int64) bool {
	t.held = bytes
	return t.growBy(bytes)
}

func (t *Tab) grow(need int64) bool { return t.growBy(max(need, tabStep), need) }

// growBy tries amounts in turn.
func (t *Tab) growBy(amounts ...int64) bool {
	l := t.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, more := range amounts {
		if l.room(t.host, more, 1) {
			l.move(t, more)
			return true
		}
	}
	l.refused++
	l.tight.Store(true)
	return false
}

// room reports whether a host would have at most so many times what is free with more bytes, and leave the reserve; or no more
// than a small one, for which the reserve is. The ledger is locked.
func (l *Ledger) room(h *accounts, more, times int64) bool {
	free, has := l.total-l.used-more, h.bytes+more
	return free >= l.total/reservedPart && free*times >= has || free >= 0 && has <= l.small
}

// move gives bytes to a tab, or takes them. The ledger is locked.
func (l *Ledger) move(t *Tab, bytes int64) {
	t.of += bytes
	t.host.bytes += bytes
	l.used += bytes
	switch free := l.total - l.used; {
	case free <= l.total/4:
		l.tight.Store(true)
	case free > l.total*5/8: // a host that was refused has at most three eighths now
		l.tight.Store(false)
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
	s := LedgerStats{Bytes: l.used, Refused: l.refused}
	for _, h := range l.hosts {
		s.MostHostBytes = max(s.MostHostBytes, h.bytes)
	}
	return s
}
