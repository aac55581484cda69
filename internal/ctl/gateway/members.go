package gateway

import (
	"slices"
	"sync"
	"time"
)

// members are the endpoints of a gateway, and which of them are avoided. Its methods may be called concurrently.
type members struct {
	pause time.Duration

	mu      sync.Mutex
	all     []string
	next    int                  // who is asked first
	avoided map[string]time.Time // until when
}

func newMembers(endpoints []string, pause time.Duration) *members {
	return &members{pause: pause, all: slices.Clone(endpoints), avoided: map[string]time.Time{}}
}

// inOrder returns all members in the order in which they are to be tried for the next connection: those that are avoided come
// last.
func (m *members) inOrder(now time.Time) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var good, bad []string
	for i := range m.all {
		one := m.all[(m.next+i)%len(m.all)]
		if now.Before(m.avoided[one]) {
			bad = append(bad, one)
		} else {
			good = append(good, one)
		}
	}
	m.next = (m.next + 1) % len(m.all)
	return append(good, bad...)
}

// note remembers whether a member has accepted a connection, and returns whether that is news.
func (m *members) note(member string, accepted bool, now time.Time) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, was := m.avoided[member]
	if accepted {
		delete(m.avoided, member)
		return was
	}
	m.avoided[member] = now.Add(m.pause)
	return !was
}
