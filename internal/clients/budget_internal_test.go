package clients

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

func offerOf(client consensus.MemberID, bytes int) consensus.Message {
	return consensus.Message{Kind: consensus.MsgRecord, From: client, Proposals: []consensus.Proposal{
		{Payload: make([]byte, bytes)},
	}}
}

// full returns a budget with one offer that fills it, and a channel that is closed when another one gets in.
func full(t *testing.T) (w *budget, in consensus.Message, more chan struct{}) {
	t.Helper()
	w = &budget{}
	w.init()
	in = offerOf(7, 64<<20)
	if !w.enter(&in) {
		t.Fatal("an offer that is too large by itself never gets in")
	}
	more = make(chan struct{})
	go func() {
		m := offerOf(8, 1)
		if w.enter(&m) {
			close(more)
		}
	}()
	return w, in, more
}

func TestBudget_enter_waits(t *testing.T) {
	w, in, more := full(t)
	w.taken([]raft.Input{raft.Tick{}, raft.Receive{Message: offerOf(8, 1)}}) // gives nothing back
	select {
	case <-more:
		t.Fatal("one more offer was let in")
	default:
	}
	w.taken([]raft.Input{raft.Receive{Message: in}})
	<-more
	w.taken([]raft.Input{raft.Receive{Message: offerOf(8, 1)}})
	if w.bytes() != 0 {
		t.Errorf("all is taken, and %d bytes wait", w.bytes())
	}
}

func TestBudget_close(t *testing.T) {
	w, _, more := full(t)
	w.close()
	m := offerOf(9, 1)
	if w.enter(&m) {
		t.Error("an offer was let in after the end")
	}
	select {
	case <-more:
		t.Error("an offer that waited was let in at the end")
	default:
	}
}
