package member

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// FastPath says when a member finds out by itself that what it proposed has committed. The zero value is auto.
type FastPath string

// The ways.
const (
	FastPathAuto   FastPath = "auto" // while the leader is so far away that it pays
	FastPathAlways FastPath = "always"
	FastPathNever  FastPath = "never"
)

// farAway is the round trip to the leader from which on counting pays: it saves the leader's round trip to the others, and
// costs each of them a small message for each of theirs. Within a rack those cost more than they save.
const farAway = time.Millisecond

// countsHolders reports whether this member is to count who holds what it proposes next.
func (m *Member) countsHolders() bool {
	leader := m.Leader()
	if leader == consensus.NoMember || leader == m.ID() {
		return false
	}
	distance, _ := m.transport.Distance(leader)
	return m.options.FastPath.pays(distance)
}

// pays reports whether to count with a leader so far away; zero means that nobody knows yet.
func (f FastPath) pays(distance time.Duration) bool {
	switch f {
	case FastPathAlways:
		return true
	case FastPathNever:
		return false
	}
	return distance >= farAway
}

// Inferred returns how many proposals of this member it found committed before the leader told it, since it started.
func (m *Member) Inferred() uint64 { return m.inferred.Load() }
