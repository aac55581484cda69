package member

import (
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// How many bytes native clients may have offered that the core has not taken yet: what lies in its inbox, and what waits for
// its stamp to be due. One message may be larger.
const (
	maxOffered       = 64 << 20
	maxClientOffered = 8 << 20
)

// offers bounds them. An offer that finds no room waits, and with it the stream that it came by.
type offers struct {
	mu      sync.Mutex
	room    sync.Cond
	closed  bool
	bytes   int
	clients map[consensus.MemberID]int // those with something waiting
}

func (o *offers) init() {
	o.room.L = &o.mu
	o.clients = map[consensus.MemberID]int{}
}

// enter counts a message, when there is room. False means that the member stops.
func (o *offers) enter(message *consensus.Message) bool {
	size := offerBytes(message)
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed && !o.fits(message.From, size) {
		o.room.Wait()
	}
	if o.closed {
		return false
	}
	o.bytes += size
	o.clients[message.From] += size
	return true
}

func (o *offers) fits(client consensus.MemberID, size int) bool {
	return (o.bytes == 0 || o.bytes+size <= maxOffered) &&
		(o.clients[client] == 0 || o.clients[client]+size <= maxClientOffered)
}

// taken makes room again for what the core takes.
func (o *offers) taken(inputs []raft.Input) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bytes == 0 {
		return
	}
	for i := range inputs {
		received, ok := inputs[i].(raft.Receive)
		if !ok {
			continue
		}
		client := received.Message.From
		if o.clients[client] == 0 || !isOffer(&received.Message) {
			continue
		}
		size := offerBytes(&received.Message)
		o.bytes -= size
		if o.clients[client] -= size; o.clients[client] == 0 {
			delete(o.clients, client)
		}
	}
	o.room.Broadcast()
}

// close lets nobody wait any more.
func (o *offers) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.room.Broadcast()
}

func (o *offers) waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes
}

func isOffer(m *consensus.Message) bool {
	return m.Kind == consensus.MsgRecord || m.Kind == consensus.MsgFastPropose
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

// OfferedBytes is how many bytes of offers of native clients wait to be looked at.
func (m *Member) OfferedBytes() int { return m.offers.waiting() }
