package lobby

import (
	"container/list"
	"net"
	"sync"
)

// Lobby holds a bounded number of connections. When one comes too many, the oldest of the host that has most is pushed out;
// those that are kept are not, and are at most half of all.
//
//	Enter --> waiting --Keep--> kept
//	            |  ^-----Unkeep---+
//	            +--> pushed out, or Leave
type Lobby struct {
	limit int

	mu      sync.Mutex
	open    int
	kept    int
	entered uint64
	pushed  uint64
	hosts   map[string]*list.List // of *Seat: those that wait, oldest first
}

// Seat is the place of one connection.
type Seat struct {
	lobby  *Lobby
	host   string
	conn   net.Conn
	number uint64        // grows with each time that a connection begins to wait
	at     *list.Element // nil: it does not wait
	users  int           // calls of Keep without one of Unkeep
	kept   bool
	left   bool
}

// New makes a lobby of at most limit connections; two is the least.
func New(limit int) *Lobby { return &Lobby{limit: max(2, limit), hosts: map[string]*list.List{}} }

// Enter takes a connection in. The caller closes the one that it pushed out, if any.
func (l *Lobby) Enter(conn net.Conn) (seat *Seat, pushed net.Conn) {
	host := Host(conn.RemoteAddr())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.limit {
		oldest := l.oldest()
		pushed = oldest.conn
		l.remove(oldest)
		l.pushed++
	}
	seat = &Seat{lobby: l, host: host, conn: conn}
	l.open++
	l.wait(seat)
	return seat, pushed
}

// Leave ends the place. It may be called again, and by one that was pushed out.
func (s *Seat) Leave() {
	s.lobby.mu.Lock()
	defer s.lobby.mu.Unlock()
	s.lobby.remove(s)
}

// Keep has the connection kept until Unkeep was called as often. It stays one that waits where half of the lobby is kept.
func (s *Seat) Keep() {
	l := s.lobby
	l.mu.Lock()
	defer l.mu.Unlock()
	s.users++
	if s.left || s.kept || l.kept >= l.limit/2 {
		return
	}
	s.kept = true
	l.kept++
	l.unwait(s)
}

// Unkeep takes one Keep back.
func (s *Seat) Unkeep() {
	l := s.lobby
	l.mu.Lock()
	defer l.mu.Unlock()
	s.users--
	if s.left || !s.kept || s.users > 0 {
		return
	}
	s.kept = false
	l.kept--
	l.wait(s)
}

// Counts tells how many connections there are, and how many were pushed out ever.
func (l *Lobby) Counts() (open int, pushed uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open, l.pushed
}

// oldest is who has to go: at least half of a full lobby waits.
func (l *Lobby) oldest() *Seat {
	var found *Seat
	most := 0
	for _, waiting := range l.hosts {
		first := waiting.Front().Value.(*Seat)
		if n := waiting.Len(); found == nil || n > most || n == most && first.number < found.number {
			found, most = first, n
		}
	}
	return found
}

func (l *Lobby) remove(s *Seat) {
	if s.left {
		return
	}
	s.left = true
	l.open--
	if s.kept {
		l.kept--
		return
	}
	l.unwait(s)
}

func (l *Lobby) wait(s *Seat) {
	waiting := l.hosts[s.host]
	if waiting == nil {
		waiting = list.New()
		l.hosts[s.host] = waiting
	}
	l.entered++
	s.number = l.entered
	s.at = waiting.PushBack(s)
}

func (l *Lobby) unwait(s *Seat) {
	waiting := l.hosts[s.host]
	waiting.Remove(s.at)
	s.at = nil
	if waiting.Len() == 0 {
		delete(l.hosts, s.host)
	}
}
