package lanes

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// sendingHost records the receivers of messages.
type sendingHost struct {
	Host
	left []consensus.MemberID
}

func (h *sendingHost) Deliver(messages []consensus.Message) {
	for i := range messages {
		h.left = append(h.left, messages[i].To)
	}
}

func (h *sendingHost) Admit(messages []consensus.Message) []consensus.Message { return messages }

// Ensure that the core's messages to its own member come back to it, and that all others leave in order.
func TestLanes_send(t *testing.T) {
	const kind = consensus.MsgRecord
	host := &sendingHost{}
	l := &Lanes{host: host, self: 1}
	l.inbox.init(1<<20, func() {})
	l.send([]consensus.Message{{To: 2}, {To: 1, Kind: kind}, {To: 3}})
	own := l.inbox.take()
	if left := host.left; len(own) != 1 || own[0].(raft.Receive).Message.Kind != kind || len(left) != 2 || left[0] != 2 || left[1] != 3 {
		t.Errorf("it took %+v, and sent to %v", own, left)
	}
	// The loop sends these messages and is the only one that takes them, so it must never wait for room.
	l.inbox.most = 1
	l.send([]consensus.Message{{From: 1, To: 1, Kind: kind}, {From: 1, To: 1, Kind: kind}, {From: 1, To: 1, Kind: kind}})
	if own := l.inbox.take(); len(own) != 3 {
		t.Errorf("it took %d of three messages to itself", len(own))
	}
}
