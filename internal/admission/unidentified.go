package admission

import (
	"net"
	"sync"

	"github.com/quorate/quorate/internal/linked"
)

// Unidentified holds a bounded number of connections whose peer has not identified itself yet. A connection beyond the
// bound evicts the oldest one of the host that has most, so that a flood of silent connections does not keep others
// out. Pinned connections are not evicted; at most half of all can be pinned.
//
//	Add --> waiting --Pin--> pinned
//	          |  ^----Unpin----+
//	          +--> evicted, or Remove
type Unidentified struct {
	limit int

	mu      sync.Mutex
	open    int
	pinned  int
	added   uint64
	evicted uint64
	hosts   map[string]*linked.List[Slot] // those that wait, oldest first
}

// Slot is the place of one connection.
type Slot struct {
	set    *Unidentified
	host   string
	conn   net.Conn
	number uint64             // grows with each time that a connection begins to wait
	place  linked.Place[Slot] // among those of its host that wait
	users  int                // calls of Pin without one of Unpin
	pinned bool
	gone   bool
}

// NewUnidentified makes a set of at most limit connections; two is the least.
func NewUnidentified(limit int) *Unidentified {
	return &Unidentified{limit: max(2, limit), hosts: map[string]*linked.List[Slot]{}}
}

// Add takes a connection in. The caller closes the one that was evicted for it, if any.
func (u *Unidentified) Add(conn net.Conn) (slot *Slot, evicted net.Conn) {
	host := Host(conn.RemoteAddr())
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.open >= u.limit {
		oldest := u.oldest()
		evicted = oldest.conn
		u.remove(oldest)
		u.evicted++
	}
	slot = &Slot{set: u, host: host, conn: conn}
	u.open++
	u.wait(slot)
	return slot, evicted
}

// Remove takes the connection out. It may be called again, and for one that was evicted.
func (s *Slot) Remove() {
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	s.set.remove(s)
}

// Pin keeps the connection from being evicted until Unpin was called as often as Pin. If half of all are pinned
// already, it has no effect yet.
func (s *Slot) Pin() {
	u := s.set
	u.mu.Lock()
	defer u.mu.Unlock()
	s.users++
	if s.gone || s.pinned || u.pinned >= u.limit/2 {
		return
	}
	s.pinned = true
	u.pinned++
	u.unwait(s)
}

// Unpin takes one Pin back.
func (s *Slot) Unpin() {
	u := s.set
	u.mu.Lock()
	defer u.mu.Unlock()
	s.users--
	if s.gone || !s.pinned || s.users > 0 {
		return
	}
	s.pinned = false
	u.pinned--
	u.wait(s)
}

// Counts returns how many connections there are, and how many have been evicted so far.
func (u *Unidentified) Counts() (open int, evicted uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.open, u.evicted
}

// oldest is the one to evict. There is one, because at least half of those in a full set wait.
func (u *Unidentified) oldest() *Slot {
	var found *Slot
	most := 0
	for _, waiting := range u.hosts {
		first := waiting.First()
		if n := waiting.Len(); found == nil || n > most || n == most && first.number < found.number {
			found, most = first, n
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
		u.pinned--
		return
	}
	u.unwait(s)
}

func (u *Unidentified) wait(s *Slot) {
	waiting := u.hosts[s.host]
	if waiting == nil {
		waiting = new(linked.List[Slot])
		u.hosts[s.host] = waiting
	}
	u.added++
	s.number = u.added
	waiting.PushBack(&s.place, s)
}

func (u *Unidentified) unwait(s *Slot) {
	s.place.Remove()
	if u.hosts[s.host].Len() == 0 {
		delete(u.hosts, s.host)
	}
}
