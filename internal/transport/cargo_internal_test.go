package transport

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

// TestTransport_cargo tells what a frame carries, of which nothing but its head is left over.
func TestTransport_cargo(t *testing.T) {
	payload := make([]byte, 1000)
	messages := []consensus.Message{
		{Kind: consensus.MsgAppend, Entries: []consensus.Entry{{Index: 1, Term: 1, Payload: payload}}},
		{Kind: consensus.MsgPropose, Proposals: []consensus.Proposal{{Payload: payload}, {Payload: payload}}},
		{Kind: consensus.MsgRecord, Proposals: []consensus.Proposal{{Payload: payload}}},
		{Kind: consensus.MsgAppendReply}, {Kind: consensus.MsgHeartbeat, Round: 7},
	}
	frame, cargo := appendMessages(nil, messages)
	var count counters
	count.carry(&cargo)
	count.carry(&cargo)
	got := count.traffic().Cargo
	for c, least := range [...]uint64{CargoEntries: 2000, CargoProposals: 6000, CargoAnswers: 2, CargoOther: 2} {
		if n := got[c]; n < least || n > least+300 {
			t.Errorf("%s: %d bytes, want %d and a little more", Cargo(c), n, least)
		}
	}
	sum := uint64(0)
	for _, n := range cargo {
		sum += n
	}
	if left := uint64(len(frame)) - sum; left != frameHeaderBytes+1 {
		t.Errorf("%d bytes of a frame of %d belong to no message", left, len(frame))
	}
}
