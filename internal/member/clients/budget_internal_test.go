package clients

import (
	"context"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/proposals"
)

func offerOf(client consensus.MemberID, bytes int) consensus.Message {
	return consensus.Message{Kind: consensus.MsgRecord, From: client, Proposals: []consensus.Proposal{
		{Payload: make([]byte, bytes)},
	}}
}

// full returns a budget that one offer fills, that offer, and a channel that is closed when a second offer gets in.
func full(t *testing.T) (w *budget, in consensus.Message, more chan struct{}) {
	t.Helper()
	ctx := t.Context()
	w = &budget{}
	w.init(0)
	in = offerOf(7, 64<<20)
	if !w.enter(ctx, &in) {
		t.Fatal("an offer that is too large by itself never gets in")
	}
	more = make(chan struct{})
	go func() {
		m := offerOf(8, 1)
		if w.enter(ctx, &m) {
			close(more)
		}
	}()
	return w, in, more
}

func TestBudget_enter_waits(t *testing.T) {
	w, in, more := full(t)
	w.taken([]raft.Input{raft.Tick{}, raft.Receive{Message: offerOf(8, 1)}}) // a tick gives no bytes back
	select {
	case <-more:
		t.Fatal("one more offer was let in")
	default:
	}
	other := offerOf(9, 1)
	if w.tryEnter(&other) {
		t.Error("one more offer that does not wait was let in")
	}
	w.taken([]raft.Input{raft.Receive{Message: in}})
	<-more
	if !w.tryEnter(&other) {
		t.Error("an offer that does not wait was not let in when there was room")
	}
	w.leave(&other)
	w.taken([]raft.Input{raft.Receive{Message: offerOf(8, 1)}})
	if w.bytes() != 0 {
		t.Errorf("all is taken, and %d bytes wait", w.bytes())
	}
}

func TestBudget_close(t *testing.T) {
	w, _, more := full(t)
	w.close()
	m := offerOf(9, 1)
	if w.enter(t.Context(), &m) {
		t.Error("an offer was let in after the end")
	}
	select {
	case <-more:
		t.Error("an offer that waited was let in at the end")
	default:
	}
}

// Ensure that a caller that waits for the budget returns when the context of its stream ends.
func TestBudget_enter_ends(t *testing.T) {
	w, _, _ := full(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() {
		m := offerOf(9, 1)
		ended <- w.enter(ctx, &m)
	}()
	cancel()
	if <-ended {
		t.Error("an offer of a stream that has ended was let in")
	}
}

// deafMember is a member that takes no offers, as one that looks for its cluster or was superseded.
type deafMember struct{ Member }

func (deafMember) Proposals() *proposals.Table    { return proposals.New(1, 1, 0) }
func (deafMember) Receive(consensus.Message) bool { return false }

// Ensure that offers which do not reach the core give their bytes back.
func TestClients_Offer_notHeard(t *testing.T) {
	c := New(Options{ID: 1, Stopping: t.Context()}, deafMember{})
	c.Offer(t.Context(), 7, offerOf(7, 100))
	if n := c.OfferedBytes(); n != 0 {
		t.Errorf("%d bytes wait for a core that will never see them", n)
	}
}
