package offers

import "github.com/quorate/quorate/internal/consensus"

const (
	// maxOffered bounds the bytes that native clients have offered and the core has not taken yet: in the inbox of the core,
	// and waiting for their stamps. A single message may be larger.
	maxOffered = 64 << 20
	// clientParts is into how many parts they are divided, of which one client has one at most.
	clientParts = 8
)

// Budget counts those bytes. The zero value is empty.
type Budget struct {
	Most    int // at most maxOffered; zero: that
	bytes   int
	clients map[consensus.MemberID]int // bytes by client; no entry for zero
}

// Bytes returns how many there are.
func (b *Budget) Bytes() int { return b.bytes }

// Enter counts an offer of a client. False means that it does not fit and is not counted.
func (b *Budget) Enter(m *consensus.Message) bool {
	size, most := offerBytes(m), maxOffered
	if b.Most > 0 {
		most = min(most, b.Most)
	}
	if b.bytes > 0 && b.bytes+size > most || b.clients[m.From] > 0 && b.clients[m.From]+size > most/clientParts {
		return false
	}
	if b.clients == nil {
		b.clients = map[consensus.MemberID]int{}
	}
	b.bytes += size
	b.clients[m.From] += size
	return true
}

// Leave gives back the bytes of an offer that the core takes. It ignores messages that did not enter.
func (b *Budget) Leave(m *consensus.Message) {
	if b.clients[m.From] == 0 || !isOffer(m) {
		return
	}
	size := offerBytes(m)
	b.bytes -= size
	if b.clients[m.From] -= size; b.clients[m.From] == 0 {
		delete(b.clients, m.From)
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
