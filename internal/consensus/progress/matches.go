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

// Note takes what a member reports, and says whether it is more than the member reported before: else it changes nothing.
func (m *Matches) Note(id consensus.MemberID, index consensus.Index) (more bool) {
	for i := range m.list {
		if m.list[i].id == id {
			more = index > m.list[i].index
			m.list[i].index = max(m.list[i].index, index)
			return more
		}
	}
	m.list = append(m.list, match{id, index})
	return true
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
