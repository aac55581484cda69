package gateway

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Endpoint is where a member listens. Of several, those of the lowest priority are tried first, and among these one of greater
// weight more often (RFC 2782); where no weight is given, they take turns.
type Endpoint struct {
	Address          string // HOST:PORT
	Priority, Weight uint16
}

// members are the endpoints of a gateway, and which of them are avoided. Its methods may be called concurrently.
type members struct {
	pause time.Duration
	draw  func(n int) int // from 0 to n-1

	all []Endpoint // by priority, then by weight

	mu      sync.Mutex
	next    int                  // whose turn it is
	avoided map[string]time.Time // until when
}

func newMembers(endpoints []Endpoint, pause time.Duration) *members {
	all := slices.Clone(endpoints)
	slices.SortStableFunc(all, func(a, b Endpoint) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Weight, b.Weight))
	})
	return &members{pause: pause, draw: rand.IntN, all: all, avoided: map[string]time.Time{}}
}

// inOrder returns all members in the order in which they are to be tried for the next connection: those that are avoided come
// last.
func (m *members) inOrder(now time.Time) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var good, bad []string
	for rest := m.all; len(rest) > 0; {
		equals := slices.IndexFunc(rest, func(e Endpoint) bool { return e.Priority != rest[0].Priority })
		if equals < 0 {
			equals = len(rest)
		}
		for _, one := range m.turns(rest[:equals]) {
			if now.Before(m.avoided[one]) {
				bad = append(bad, one)
			} else {
				good = append(good, one)
			}
		}
		rest = rest[equals:]
	}
	m.next++
	return append(good, bad...)
}

// turns orders members of one priority: each comes first in its turn, or by chance, as their weights say.
func (m *members) turns(equals []Endpoint) []string {
	total := 0
	for _, e := range equals {
		total += int(e.Weight)
	}
	out := make([]string, 0, len(equals))
	if total == 0 {
		for i := range equals {
			out = append(out, equals[(m.next+i)%len(equals)].Address)
		}
		return out
	}
	for left := slices.Clone(equals); len(left) > 0; {
		// As RFC 2782 says: the first whose running sum reaches the number drawn. Those without weight are first.
		drawn, at := m.draw(total+1), 0
		for drawn -= int(left[at].Weight); drawn > 0; drawn -= int(left[at].Weight) {
			at++
		}
		total -= int(left[at].Weight)
		out = append(out, left[at].Address)
		left = slices.Delete(left, at, at+1)
	}
	return out
}

// addresses are those of all members.
func (m *members) addresses() []string {
	var out []string
	for _, e := range m.all {
		out = append(out, e.Address)
	}
	return out
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
