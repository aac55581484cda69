package raft

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Ensure that a term is pending, and a promise not given, until the request that carries it is durable.
func TestHardState_pending(t *testing.T) {
	var h hardState
	if h.pending() || h.changed() || h.promised(50) != 0 {
		t.Fatalf("at the start: pending %t, changed %t, promised %d", h.pending(), h.changed(), h.promised(50))
	}
	h.term, h.vote, h.promise = 3, 1, 50
	if !h.pending() || !h.changed() {
		t.Errorf("before it is saved: pending %t, changed %t", h.pending(), h.changed())
	}
	h.seq = 4
	got := h.save(7)
	if want := (consensus.HardState{Term: 3, Vote: 1, Commit: 7, Promise: 50}); *got != want {
		t.Errorf("saved %+v, want %+v", *got, want)
	}
	h.doneSeq = 3
	if !h.pending() || h.changed() || h.promised(50) != 0 {
		t.Errorf("under way: pending %t, changed %t, promised %d", h.pending(), h.changed(), h.promised(50))
	}
	h.doneSeq = 4
	if h.pending() || h.promised(50) != 50 || h.promised(51) != 0 {
		t.Errorf("durable: pending %t, promised %d, and more %d", h.pending(), h.promised(50), h.promised(51))
	}
	h.seq, h.vote = 5, 2
	if h.save(8); h.pending() {
		t.Error("a vote alone makes the term pending again")
	}
}

// Ensure that messages of a term wait for it, and that consecutive refusals to one member leave in one message.
func TestOutbox_send(t *testing.T) {
	r := &Replica{opts: Options{ID: 1}, configs: configs.New(1, consensus.StorageID{}, nil, rules.Set{}), hard: hardState{term: 2}}
	o, hard := &r.out, &r.hard
	r.sendInTerm(consensus.Message{Kind: consensus.MsgHeartbeat, To: 2})
	hard.seq = 1
	hard.save(0)
	if r.releaseHeld(); len(o.Send)+len(o.SendAfter) != 0 {
		t.Errorf("left before the term was durable: %+v %+v", o.Send, o.SendAfter)
	}
	hard.doneSeq = 1
	r.releaseHeld()
	r.sendInTerm(consensus.Message{Kind: consensus.MsgHeartbeat, To: 3})
	id := consensus.ProposalID{Sequence: 1}
	for _, to := range []consensus.MemberID{2, 2, 1, 3} {
		r.refuse(id, to, consensus.ReasonBusy)
	}
	r.flushRefusals()
	out := o.take()
	if len(out.Send) != 4 || out.Send[0].To != 2 || out.Send[0].From != 1 || out.Send[0].Term != 2 {
		t.Fatalf("what waited for the term does not leave first: %+v", out.Send)
	}
	if out.Send[1].To != 3 || len(out.Send[2].Refusals) != 2 || len(out.Send[3].Refusals) != 1 || len(out.SendAfter) != 0 {
		t.Errorf("leaves at once: %+v, after the disk: %+v", out.Send, out.SendAfter)
	}
	if len(out.Refusals) != 1 || out.Refusals[0].Reason != consensus.ReasonBusy {
		t.Errorf("own refusals: %+v", out.Refusals)
	}
	if again := o.take(); len(again.Send)+len(again.SendAfter)+len(again.Refusals) != 0 {
		t.Errorf("left over: %+v", again)
	}
}

// Ensure that a message waits for its own term and not for later ones: terms that change faster than the disk writes them must
// not hold all messages back.
func TestOutbox_releaseHeld_termsChange(t *testing.T) {
	r := &Replica{opts: Options{ID: 1}, configs: configs.New(1, consensus.StorageID{}, nil, rules.Set{})}
	o, hard := &r.out, &r.hard
	for term := consensus.Term(1); term <= 3; term++ {
		hard.term = term
		r.sendInTerm(consensus.Message{Kind: consensus.MsgHeartbeatReply, To: 2}) // before the request is made, and after
		hard.seq++
		hard.save(0)
		r.sendInTerm(consensus.Message{Kind: consensus.MsgHeartbeatReply, To: 3})
	}
	for term := consensus.Term(1); term <= 3; term++ {
		hard.doneSeq = uint64(term)
		r.releaseHeld()
		out := o.take()
		if len(out.Send) != 2 || out.Send[0].To != 2 || out.Send[1].To != 3 || out.Send[0].Term != term || out.Send[1].Term != term {
			t.Errorf("with term %d %+v leave", term, out.Send)
		}
	}
	if len(o.held) > 0 {
		t.Errorf("held for ever: %+v", o.held)
	}
}
