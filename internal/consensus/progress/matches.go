package progress

import "github.com/quorate/quorate/internal/consensus"

// Matches is how far the logs of members are known to equal the leader's, durably. A follower that counts acknowledgements
// itself keeps it, for one term.
type Matches struct {
	list []match
}

type match struct {
	id    consensus.MemberID
	index consensus.Index
}

// Note takes what a member reports. Less than it reported before changes nothing.
func (m *Matches) Note(id consensus.MemberID, index consensus.Index) {
	for i := range m.list {
		if m.list[i].id == id {
			m.list[i].index = max(m.list[i].index, index)
			return
		}
	}
	m.list = append(m.list, match{id, index})
}

// Of returns how far a member's log is known, zero if it is not.
func (m *Matches) Of(id consensus.MemberID) consensus.Index {
	for i := range m.list {
		if m.list[i].id == id {
			return m.list[i].index
		}
	}
	return 0
}

// Len returns of how many members something is known.
func (m *Matches) Len() int { return len(m.list) }

// Clear forgets all.
func (m *Matches) Clear() { m.list = m.list[:0] }
