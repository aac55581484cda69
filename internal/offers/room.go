package offers

import "github.com/quorate/quorate/internal/consensus"

// How many bytes native clients may have offered that the core has not taken yet: what lies in its inbox, and what waits for
// its stamp to be due. One message may be larger.
const (
	maxOffered       = 64 << 20
	maxClientOffered = 8 << 20
)

// Room counts them. The zero value is empty.
type Room struct {
	bytes   int
	clients map[consensus.MemberID]int // those with something waiting
}

// Bytes returns how many there are.
func (r *Room) Bytes() int { return r.bytes }

// Enter counts an offer of a client, if there is room for it.
func (r *Room) Enter(m *consensus.Message) bool {
	size := offerBytes(m)
	if r.bytes > 0 && r.bytes+size > maxOffered || r.clients[m.From] > 0 && r.clients[m.From]+size > maxClientOffered {
		return false
	}
	if r.clients == nil {
		r.clients = map[consensus.MemberID]int{}
	}
	r.bytes += size
	r.clients[m.From] += size
	return true
}

// Leave makes room again for an offer that the core takes. Messages that did not enter make none.
func (r *Room) Leave(m *consensus.Message) {
	if r.clients[m.From] == 0 || !isOffer(m) {
		return
	}
	size := offerBytes(m)
	r.bytes -= size
	if r.clients[m.From] -= size; r.clients[m.From] == 0 {
		delete(r.clients, m.From)
	}
}

// offerBytes is about what an offer takes.
func offerBytes(m *consensus.Message) int {
	const message, proposal = 512, 128
	size := message
	for i := range m.Proposals {
		size += proposal + len(m.Proposals[i].Payload)
	}
	return size
}
