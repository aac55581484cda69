package member

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Receive takes messages from other members. It is the transport's handler.
func (m *Member) Receive(messages []consensus.Message) {
	m.inbox.putMessages(m.epochs.State().Admit(messages))
}

// PeerLost tells the core that a connection broke: evidence that the peer died. It is the transport's handler.
func (m *Member) PeerLost(peer consensus.MemberID) { m.inbox.put(raft.Unreachable{Member: peer}) }
