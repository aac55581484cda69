package consensus

// ofClients is set in the number of every session of a native client, and of no other: members count their boots in the
// upper half of theirs, from zero. A client's session bears the client's id in place of a member's.
const ofClients = 1 << 63

// ClientSession names the n-th session of the clients; they share one row of numbers.
func ClientSession(client MemberID, n uint64) SessionID {
	return SessionID{Member: client, Number: ofClients | n}
}

// OfClient reports whether the session is a native client's.
func (id SessionID) OfClient() bool { return id.Number&ofClients != 0 }

// ClientNumber returns which session of the clients this is.
func (id SessionID) ClientNumber() uint64 { return id.Number &^ ofClients }
