package transport_test

import (
	"testing"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/consensus"
)

// TestTransport_Send_newTerm drops what a leader that steps down has left of its term: whatever comes after waits behind it.
func TestTransport_Send_newTerm(t *testing.T) {
	m := start(t, 1)
	m.SetPeers([]consensus.Member{
		{ID: 1, PeerURLs: []string{m.url}},
		{ID: 2, PeerURLs: []string{"http://" + testnet.Address(t)}}, // no process is there: what is sent waits
		{ID: 3, PeerURLs: []string{"http://" + testnet.Address(t)}},
	})
	to := func(kind consensus.MessageKind, to consensus.MemberID, term consensus.Term) consensus.Message {
		return consensus.Message{Kind: kind, From: 1, To: to, Term: term}
	}
	var dropped [2]uint64
	waiting := func(want ...int) {
		t.Helper()
		for i, p := range m.Stats().Peers {
			if p.Dropped != dropped[i] {
				t.Errorf("of what was for member %v %d messages count as dropped, want %d", p.Peer, p.Dropped, dropped[i])
			}
			if p.WaitingMessages != want[i] || (p.WaitingBytes == 0) != (want[i] == 0) {
				t.Errorf("for member %v wait %d messages of %d bytes, want %d", p.Peer, p.WaitingMessages, p.WaitingBytes, want[i])
			}
		}
	}
	m.Send([]consensus.Message{
		to(consensus.MsgAppend, 2, 4), to(consensus.MsgPropose, 2, 4), to(consensus.MsgAppend, 2, 4), to(consensus.MsgAppend, 3, 4),
	})
	waiting(3, 1)
	m.Send([]consensus.Message{to(consensus.MsgPreVote, 3, 5)})
	waiting(3, 2)
	dropped = [2]uint64{2, 1}
	m.Send([]consensus.Message{to(consensus.MsgAppendReply, 3, 5), to(consensus.MsgAppend, 2, 5)})
	waiting(2, 2)
	m.Send([]consensus.Message{to(consensus.MsgAppend, 2, 5)})
	waiting(3, 2)
}
