package apply

import (
	"github.com/quorate/quorate/internal/consensus"
)

// The sessions of native clients. There may be any number of clients, each of them may vanish, and none of them comes back
// under its name, so that nothing may be kept of one whose sessions are retired. All of them share one row of numbers: one
// that is not beyond every session of a client that was retired so far opens nothing any more. That refuses late duplicates
// of openings for ever, and now and then a client that must ask for a higher number.

// retiredClients is where sessions.highest keeps the highest number of a client's retired session. No member has this id.
const retiredClients = consensus.NoMember

// clientMayOpen is mayOpen for a session of a client.
func (m *Machine) clientMayOpen(id consensus.SessionID) bool {
	if _, removed := m.Removed(id.Member); removed || id.Number <= m.sessions.highest[retiredClients] {
		return false
	}
	for _, other := range m.sessions.byMember[id.Member] {
		if other.id.OfClient() && other.id.Number >= id.Number {
			return false
		}
	}
	return true
}

// ClientSessions returns the open sessions of native clients, in no particular order.
func (m *Machine) ClientSessions() []consensus.SessionID {
	m.sessionMu.Lock()
	defer m.sessionMu.Unlock()
	var open []consensus.SessionID
	for id := range m.sessions.byID {
		if id.OfClient() {
			open = append(open, id)
		}
	}
	return open
}

// NextClientSession returns a name under which a client may open its next session, unless others end before that comes to
// pass that were opened after this call. above is the last session that the client has had: this member may not have applied
// its opening yet, and the same name would be taken for a repeated opening of it.
func (m *Machine) NextClientSession(client consensus.MemberID, above uint64) consensus.SessionID {
	m.sessionMu.Lock()
	defer m.sessionMu.Unlock()
	last := consensus.SessionID{Number: max(m.sessions.highest[retiredClients], above)}
	for id := range m.sessions.byID {
		if id.OfClient() && id.Number > last.Number {
			last = id
		}
	}
	return consensus.ClientSession(client, last.ClientNumber()+1)
}

// SessionEnded reports whether a session is not open and never will be.
func (m *Machine) SessionEnded(id consensus.SessionID) bool {
	m.sessionMu.Lock()
	defer m.sessionMu.Unlock()
	return m.sessions.find(id) == nil && !m.mayOpen(id)
}
