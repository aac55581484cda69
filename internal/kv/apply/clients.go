package apply

import (
	"github.com/quorate/quorate/internal/consensus"
)

// The sessions of native clients. There may be any number of clients, each of them may vanish, and none of them comes back
// under its name, so the table keeps no row for a client whose sessions are retired. All clients share one number instead: a
// session whose number is not above those of all client sessions retired so far does not open. That refuses late duplicates of
// openings for ever, and sometimes a client, which must then ask for a higher number.

// retiredClients is the key of sessionTable.highest with the highest number of a client's retired session. No member has this
// id.
const retiredClients = consensus.NoMember

// clientMayOpen is mayOpen for a session of a client.
func (t *sessionTable) clientMayOpen(id consensus.SessionID) bool {
	if _, removed := t.members.removed(id.Member); removed || id.Number <= t.highest[retiredClients] {
		return false
	}
	for _, other := range t.byMember[id.Member] {
		if other.id.OfClient() && other.id.Number >= id.Number {
			return false
		}
	}
	return true
}

// ofClients returns the open sessions of native clients, in no particular order.
func (t *sessionTable) ofClients() []consensus.SessionID {
	t.mu.Lock()
	defer t.mu.Unlock()
	var open []consensus.SessionID
	for id := range t.byID {
		if id.OfClient() {
			open = append(open, id)
		}
	}
	return open
}

// nextOfClient returns a name for a client's next session: its number is above those of all client sessions that are open or
// retired, and above the number above.
func (t *sessionTable) nextOfClient(client consensus.MemberID, above uint64) consensus.SessionID {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := consensus.SessionID{Number: max(t.highest[retiredClients], above)}
	for id := range t.byID {
		if id.OfClient() && id.Number > last.Number {
			last = id
		}
	}
	return consensus.ClientSession(client, last.ClientNumber()+1)
}
