package transport_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/transport"
)

// Ensure that a process that repeats the claim of a member that runs, to the letter, does not take its stream, is not heard,
// and hides nothing that the member says; nor while the member is cut off.
func TestTransport_handshake_replayed(t *testing.T) {
	a, b := start(t, 1, disk(1, 1)), start(t, 2, disk(2, 5))
	members := boundTo(a, b)
	a.SetPeers(members)
	b.SetPeers(members)
	a.waitFor(2)
	b.waitFor(1)
	impostor := start(t, 2, disk(2, 5))
	impostor.SetPeers(members)
	impostor.waitFor(1)
	received := a.Stats().Peers[0].Received.Messages
	impostor.Send([]consensus.Message{{Kind: consensus.MsgAppendReply, From: 2, To: 1, Term: 1}, heartbeat(2, 1, 1)})
	for a.Stats().Peers[0].Received.Messages < received+2 {
		osYield()
	}
	b.Send([]consensus.Message{{Kind: consensus.MsgAppendReply, From: 2, To: 1, Term: 7}})
	if m := a.next(); m.Term != 7 {
		t.Errorf("got %+v of the impostor", m)
	}
	none(t, a.lost, "lost peer")
	_ = impostor.Close()
	b.Send([]consensus.Message{{Kind: consensus.MsgAppendReply, From: 2, To: 1, Term: 8}})
	if m := a.next(); m.Term != 8 {
		t.Errorf("got %+v", m)
	}
	none(t, a.lost, "lost peer: only an impostor went")
}

// Ensure that a stream is believed once its sender becomes a member whose address can be asked, without another one.
func TestTransport_receive_confirmedLater(t *testing.T) {
	a, b := start(t, 1, disk(1, 1)), start(t, 2, disk(2, 5))
	members := boundTo(a, b)
	astray := boundTo(a, b)
	astray[1].PeerURLs = []string{"http://127.0.0.1:1"}
	a.SetPeers(astray)
	b.SetPeers(members)
	b.waitFor(1)
	b.Send([]consensus.Message{heartbeat(2, 1, 1)})
	awaitReceived(t, a)
	none(t, a.messages, "message of a member that answers nowhere")
	a.SetPeers(members)
	a.waitFor(2)
	b.Send([]consensus.Message{heartbeat(2, 1, 2)})
	for m := a.next(); m.Round != 2; m = a.next() {
		if m.Round != 1 { // that one may have waited for the answer
			t.Errorf("got %+v", m)
		}
	}
}

// Ensure that nothing is heard of a process whose id no known member has, by streams or snapshots, until the member knows of it and
// finds it at its address; and that a process that joins hears any process that calls.
func TestTransport_receive_unknownID(t *testing.T) {
	a, b := start(t, 1, disk(1, 1)), start(t, 2, disk(2, 5))
	members := boundTo(a, b)
	a.SetPeers(members[:1])
	b.SetPeers(members)
	b.waitFor(1)
	b.Send([]consensus.Message{heartbeat(2, 1, 1)})
	for late := time.Now().Add(patience); a.Refusals(identity.Unproved) == 0; <-time.After(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("what is not heard is not counted")
		}
	}
	none(t, a.messages, "message of a process that is not known")
	err := b.SendSnapshot(t.Context(), 1, meta, func(io.Writer) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "nobody answers for it") {
		t.Errorf("a snapshot: %v", err)
	}
	a.SetPeers(members)
	a.waitFor(2)
	b.Send([]consensus.Message{heartbeat(2, 1, 2)})
	for m := a.next(); m.Round != 2; m = a.next() {
	}

	starts := start(t, 4, disk(4, 1), func(o *transport.Options) { o.Identity.HasConfig = true })
	b.SetPeers(append(members, consensus.Member{ID: 4, PeerURLs: []string{starts.url}}))
	b.waitFor(4)
	before := starts.Refusals(identity.Unproved)
	b.Send([]consensus.Message{heartbeat(2, 4, 9)})
	for late := time.Now().Add(patience); starts.Refusals(identity.Unproved) == before; <-time.After(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("what is not heard before the first configuration is not counted")
		}
	}
	none(t, starts.messages, "message before the first configuration")

	joins := start(t, 3, disk(3, 1))
	joins.SetPeers(members[:1])
	b.SetPeers(append(members, consensus.Member{ID: 3, PeerURLs: []string{joins.url}}))
	b.waitFor(3)
	b.Send([]consensus.Message{heartbeat(2, 3, 3)})
	if m := joins.next(); m.Round != 3 {
		t.Errorf("one that joins got %+v", m)
	}
}

// Ensure that a call for members is refused if its sender only repeats a member's claim, but for the call by which a member says
// that it has moved.
func TestTransport_Call_replayed(t *testing.T) {
	a := answering(start(t, 1, disk(1, 1), func(o *transport.Options) { o.MovedMethods = []string{"who"} }))
	b := start(t, 2, disk(2, 5))
	members := boundTo(a, b)
	a.SetPeers(members)
	b.SetPeers(members)
	a.waitFor(2)
	b.waitFor(1)
	impostor := start(t, 2, disk(2, 5))
	impostor.SetPeers(members)
	impostor.waitFor(1)
	ctx := context.Background()
	if _, err := impostor.Call(ctx, 1, "echo", nil, mostAnswer); status.Code(err) != codes.FailedPrecondition ||
		!strings.Contains(err.Error(), "unproved") {
		t.Errorf("a call for members: got %v, want that it is not proved", err)
	}
	for _, m := range []*member{impostor, b} {
		if got, err := m.Call(ctx, 1, "who", nil, mostAnswer); err != nil || string(got) != "2" {
			t.Errorf("where it is: got %q, %v", got, err)
		}
	}
	if _, err := b.Call(ctx, 1, "echo", nil, mostAnswer); err != nil {
		t.Errorf("a call of the member: %v", err)
	}
}
