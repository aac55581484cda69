package admission

import (
	"net"
	"sync"

	"github.com/quorate/quorate/internal/base/linked"
)

// Unidentified bounds the cost of connections whose peer has not identified itself. Add and Hold are told the cost: of each
// connection one, or its bytes. Over the limit it evicts a connection of the host with the highest total, so that a flood from
// one host does not keep others out: one that has at least half of that total, else the oldest. A pinned connection is not
// evicted, and costs only what Add was told; pinned ones take at most half of the limit.
//
//	Add --> waiting --Pin--> pinned
//	          |  ^----Unpin----+
//	          +--> evicted, or Remove
type Unidentified struct {
	limit int64

	mu      sync.Mutex
	open    int
	added   uint64
	held    int64 // by all
	pinned  int64 // of that by those that are pinned
	evicted uint64
	hosts   map[string]*waiters
}

// waiters are the connections of one host that wait, oldest first.
type waiters struct {
	linked.List[Slot]
	held int64
}

// Slot is the place of one connection.
type Slot struct {
	set    *Unidentified
	host   string
	conn   net.Conn
	place  linked.Place[Slot] // among those of its host that wait
	since  uint64             // when it was added, or began to wait again: a number that grows
	base   int64              // counted by Add
	more   int64              // counted by Hold
	users  int                // calls of Pin without one of Unpin
	pinned bool
	gone   bool
}

// NewUnidentified makes a set that holds at most limit.
func NewUnidentified(limit int64) *Unidentified {
	return &Unidentified{limit: limit, hosts: map[string]*waiters{}}
}

// Add takes a connection in that counts as so much. The caller closes those that were evicted for it.
func (u *Unidentified) Add(conn net.Conn, base int64) (slot *Slot, evicted []net.Conn) {
	host := Host(conn.RemoteAddr())
	u.mu.Lock()
	defer u.mu.Unlock()
	u.added++
	slot = &Slot{set: u, host: host, conn: conn, since: u.added, base: base}
	evicted = u.makeRoom(base)
	u.open++
	u.wait(slot)
	return slot, evicted
}

// Hold counts more for the connection, or less. The caller closes those that were evicted for it; this one may be one of them.
func (s *Slot) Hold(more int64) (evicted []net.Conn) {
	u := s.set
	u.mu.Lock()
	defer u.mu.Unlock()
	s.more += more
	if s.gone || s.pinned {
		return nil
	}
	u.held += more
	u.hosts[s.host].held += more
	return u.makeRoom(0)
}

// Remove takes the connection out. It may be called again, and for one that was evicted.
func (s *Slot) Remove() {
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	s.set.remove(s)
}

// Pin keeps the connection from being evicted until Unpin was called as often as Pin. If half of the bound is pinned already,
// it has no effect yet.
func (s *Slot) Pin() {
	u := s.set
	u.mu.Lock()
	defer u.mu.Unlock()
	s.users++
	if s.gone || s.pinned || u.pinned+s.base > u.limit/2 {
		return
	}
	u.unwait(s)
	s.pinned = true
	u.held += s.base
	u.pinned += s.base
}

// Unpin takes one Pin back. The caller closes those that were evicted for what the connection holds.
func (s *Slot) Unpin() (evicted []net.Conn) {
	u := s.set
	u.mu.Lock()
	defer u.mu.Unlock()
	s.users--
	if s.gone || !s.pinned || s.users > 0 {
		return nil
	}
	s.pinned = false
	u.held -= s.base
	u.pinned -= s.base
	u.added++
	s.since = u.added
	u.wait(s)
	return u.makeRoom(0)
}

// Counts returns how many connections there are, and how many have been evicted so far.
func (u *Unidentified) Counts() (open int, evicted uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.open, u.evicted
}

// Held returns what counts now.
func (u *Unidentified) Held() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.held
}

// makeRoom evicts until there is room for more, or no connection waits.
func (u *Unidentified) makeRoom(more int64) (evicted []net.Conn) {
	for u.held+more > u.limit {
		s := u.next()
		if s == nil {
			break
		}
		evicted = append(evicted, s.conn)
		u.remove(s)
		u.evicted++
	}
	return evicted
}

// next is the one to evict; nil if no connection waits.
func (u *Unidentified) next() (found *Slot) {
	most := int64(-1)
	for _, waiting := range u.hosts {
		first := waiting.First()
		if waiting.held < most || waiting.held == most && first.since > found.since {
			continue
		}
		most, found = waiting.held, first
	}
	if found == nil {
		return nil
	}
	for s := found; s != nil; s = s.place.Next() {
		if 2*(s.base+s.more) >= most {
			return s
		}
	}
	return found
}

func (u *Unidentified) remove(s *Slot) {
	if s.gone {
		return
	}
	s.gone = true
	u.open--
	if s.pinned {
		u.held -= s.base
		u.pinned -= s.base
		return
	}
	u.unwait(s)
}

func (u *Unidentified) wait(s *Slot) {
	waiting := u.hosts[s.host]
	if waiting == nil {
		waiting = new(waiters)
		u.hosts[s.host] = waiting
	}
	waiting.PushBack(&s.place, s)
	waiting.held += s.base + s.more
	u.held += s.base + s.more
}

func (u *Unidentified) unwait(s *Slot) {
	s.place.Remove()
	waiting := u.hosts[s.host]
	waiting.held -= s.base + s.more
	u.held -= s.base + s.more
	if waiting.Len() == 0 {
		delete(u.hosts, s.host)
	}
}
