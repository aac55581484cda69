package transport_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/transport"
)

func disk(n byte, boots uint64) func(*transport.Options) {
	return func(o *transport.Options) {
		o.Self.Storage, o.Self.Life = consensus.StorageID{n}, consensus.Life{Boots: boots, Nonce: 1000*uint64(n) + boots}
	}
}

// boundTo are members 1 and 2, at the URLs of a and b, each bound to the storage id of its number.
func boundTo(a, b *member) []consensus.Member {
	return []consensus.Member{
		{ID: 1, Name: "m1", PeerURLs: []string{a.url}, Storage: consensus.StorageID{1}},
		{ID: 2, Name: "m2", PeerURLs: []string{b.url}, Storage: consensus.StorageID{2}},
	}
}

// Ensure that a member whose disk is another one than it is bound to is refused whichever side dials, by name on both sides,
// that nothing of what it says arrives, and that it is told.
func TestTransport_handshake_lostDisk(t *testing.T) {
	told := make(chan *identity.Refusal, 100)
	a := start(t, 1, disk(1, 1))
	b := start(t, 2, disk(9, 1), func(o *transport.Options) {
		o.Identity.Refused = func(_ consensus.MemberID, r *identity.Refusal) bool { told <- r; return true }
	})
	a.SetPeers(boundTo(a, b))
	a.logs.await(t, "peer refused", "lost-disk") // a dials
	open := boundTo(a, b)
	open[0].Storage, open[1].Storage = consensus.NoStorage, consensus.NoStorage
	b.SetPeers(open) // b dials, and knows of no binding
	a.logs.await(t, "refused a connection", "lost-disk")
	b.logs.await(t, "peer refused", "lost-disk")
	if r := receive(t, told, "a word of the refusal"); r.Reason != identity.LostDisk {
		t.Errorf("told %v", r)
	}
	b.Send([]consensus.Message{heartbeat(2, 1, 1)})
	none(t, a.messages, "message of a member that lost its disk")
	if trouble, found := a.Trouble(2); !found || trouble.Reason != identity.LostDisk {
		t.Errorf("trouble of 2: %v, %v", trouble, found)
	}
	if a.Refusals(identity.LostDisk) == 0 {
		t.Error("no refusal is counted")
	}
}

// Ensure that a peer which refuses this member, that need not obey, is not met, so that no member binds it, is shown as of
// another history, and can be the member again once it accepts this one.
func TestTransport_handshake_otherHistory(t *testing.T) {
	a := start(t, 1, disk(1, 1), func(o *transport.Options) {
		o.Identity.Refused = func(consensus.MemberID, *identity.Refusal) bool { return false }
	})
	other := start(t, 2, disk(9, 1))
	members := boundTo(a, other)
	members[0].Storage = consensus.StorageID{8} // so it was in the other history
	other.SetPeers(members)
	members = boundTo(a, other)
	members[1].Storage, members[1].PeerURLs = consensus.NoStorage, []string{"http://127.0.0.1:1"}
	a.SetPeers(members)
	other.logs.await(t, "peer refused", "lost-disk") // it dials, is welcome, and does not welcome
	if met := a.Met(); len(met) != 0 {
		t.Errorf("met %v, which refuses this member", met)
	}
	members[1].PeerURLs = []string{other.url}
	a.SetPeers(members) // a dials, and is refused
	a.logs.await(t, "peer is of another history of this cluster", "move its data directories aside")
	other.logs.await(t, "peer refused", "other-history")
	trouble, found := a.Trouble(2)
	if !found || trouble.Reason != identity.OtherHistory || len(a.OtherHistories()) != 1 || a.OtherHistories()[0] != trouble.Text {
		t.Errorf("trouble of 2: %v, %v; histories: %v", trouble, found, a.OtherHistories())
	}
	if a.Refusals(identity.OtherHistory) == 0 || len(a.Met()) != 0 {
		t.Errorf("%d refusals are counted; met %v", a.Refusals(identity.OtherHistory), a.Met())
	}
	_ = other.Close()
	l, err := net.Listen("tcp", strings.TrimPrefix(other.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	b := startOn(t, 2, l, disk(2, 1))
	b.SetPeers(members)
	a.waitFor(2)
	b.waitFor(1)
	if _, found := a.Trouble(2); found || len(a.OtherHistories()) != 0 || len(a.Met()) != 1 {
		t.Errorf("trouble: %t; histories: %v; met: %v", found, a.OtherHistories(), a.Met())
	}
}

// Ensure that a member that was removed is told so when it speaks, though nothing is heard in its name, over the stream that it has
// opened: it has judged who answers, and one of another history tells it nothing.
func TestTransport_receive_removed(t *testing.T) {
	gone := func(o *transport.Options) {
		o.Identity.Removed = func(id consensus.MemberID) bool { return id == 2 }
	}
	a, b := start(t, 1, disk(1, 1), gone), start(t, 2, disk(2, 1))
	members := boundTo(a, b)
	a.SetPeers(members[:1])
	b.SetPeers(members)
	b.waitFor(1)
	for _, says := range [][]consensus.Message{{heartbeat(2, 1, 1)}, nil, nil} { // its pings say that it is there
		b.Send(says)
		if m := b.next(); m.Kind != consensus.MsgRemoved || m.From != 1 || m.To != 2 {
			t.Errorf("it is told %+v", m)
		}
	}
	none(t, a.messages, "message of a removed member")

	members[0].Storage = consensus.StorageID{9} // b is of another history, in which a has another directory
	c := start(t, 2, disk(2, 1))
	c.SetPeers(members)
	c.logs.await(t, "peer refused", "lost-disk")
	c.Send([]consensus.Message{heartbeat(2, 1, 1)})
	none(t, c.messages, "word of a process of another history")
}

// Ensure that a second process which takes a member's name, with another data directory, casts no doubt on the member, connected or
// not, until it answers at the member's address: an operator would replace it.
func TestTransport_Trouble_ofAnotherProcess(t *testing.T) {
	a, b := start(t, 1, disk(1, 1)), start(t, 2, disk(2, 1))
	members := boundTo(a, b)
	a.SetPeers(members)
	b.SetPeers(members)
	a.waitFor(2)
	b.waitFor(1)
	other := start(t, 2, disk(9, 1))
	other.SetPeers(members)
	other.logs.await(t, "peer refused", "lost-disk")
	if trouble, found := a.Trouble(2); found {
		t.Errorf("member 2, which is connected, is in trouble: %+v", trouble)
	}
	if met := a.Met(); len(met) != 1 || met[0].Storage != (consensus.StorageID{2}) {
		t.Errorf("met %v", met)
	}
	_ = b.Close()
	receive(t, a.lost, "the word that member 2 is gone")
	for n := a.Refusals(identity.LostDisk); a.Refusals(identity.LostDisk) < n+2; osYield() {
	}
	if trouble, found := a.Trouble(2); found {
		t.Errorf("member 2, which is down, is in trouble by the word of another process: %+v", trouble)
	}
	_ = other.Close()
	l, err := net.Listen("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	startOn(t, 2, l, disk(9, 2))
	for late := time.After(patience); ; osYield() {
		if trouble, found := a.Trouble(2); found && trouble.Reason == identity.LostDisk {
			return // it answers at the member's address
		}
		select {
		case <-late:
			t.Fatal("another disk answers at the address of member 2, and nobody tells of it")
		default:
		}
	}
}

// Ensure that a stream that was opened before the member was bound ends once it is bound to another data directory.
func TestTransport_Configure_bindsOpenStreams(t *testing.T) {
	a, b := start(t, 1, disk(1, 1)), start(t, 2, disk(9, 1))
	acquaint(a, b)
	a.SetPeers(boundTo(a, b))
	a.logs.await(t, "peer refused", "lost-disk")
}

// Ensure that answers of an unbound member do not arrive while others are bound, and that its questions do.
func TestTransport_receive_unbound(t *testing.T) {
	a, b := start(t, 1, disk(1, 1)), start(t, 2, disk(2, 1))
	members := boundTo(a, b)
	members[1].Storage = consensus.NoStorage
	config := &consensus.Config{Voters: []consensus.MemberID{1, 2}, Members: members}
	a.Configure(config)
	b.Configure(config)
	a.waitFor(2)
	b.waitFor(1)
	b.Send([]consensus.Message{
		{Kind: consensus.MsgAppendReply, From: 2, To: 1, Term: 1}, {Kind: consensus.MsgVoteReply, From: 2, To: 1, Term: 1},
		{Kind: consensus.MsgPropose, From: 2, To: 1, Term: 1},
	})
	if m := a.next(); m.Kind != consensus.MsgPropose {
		t.Errorf("got %+v of an unbound member", m)
	}
	if met := a.Met(); len(met) != 1 || met[0].Storage != (consensus.StorageID{2}) {
		t.Errorf("met %v", met)
	}
}

// Ensure that an older start of a data directory is refused after the one that follows it, and after a restart of the member
// that remembers.
func TestTransport_handshake_rolledBack(t *testing.T) {
	var remembered []identity.Seen
	keep := func(o *transport.Options) {
		o.Identity.Remember = func(seen []identity.Seen) error { remembered = seen; return nil }
	}
	a, b := start(t, 1, disk(1, 1), keep), start(t, 2, disk(2, 5))
	a.SetPeers(boundTo(a, b))
	b.SetPeers(boundTo(a, b))
	a.waitFor(2)
	_ = b.Close()
	_ = a.Close()
	a = start(t, 1, disk(1, 2), func(o *transport.Options) { o.Identity.Seen = remembered })
	b = start(t, 2, disk(2, 4))
	b.SetPeers(boundTo(a, b))
	a.SetPeers(boundTo(a, b))
	b.logs.await(t, "peer refused", "rolled-back")
}

// Ensure that a second process on a copy of a data directory is refused while the first speaks, with both addresses.
func TestTransport_handshake_cloned(t *testing.T) {
	quick := func(o *transport.Options) { o.Times.DeadAfter = time.Second }
	named := func(name string) func(*transport.Options) {
		return func(o *transport.Options) { o.Self.Address = name }
	}
	a, b := start(t, 1, disk(1, 1), quick), start(t, 2, disk(2, 5), quick, named("http://first:1"))
	clone := start(t, 2, disk(2, 6), quick, named("http://second:2"))
	a.SetPeers(boundTo(a, b))
	b.SetPeers(boundTo(a, b))
	a.waitFor(2)
	b.waitFor(1)
	clone.SetPeers(boundTo(a, clone))
	a.logs.await(t, "refused (cloned)", "http://first:1", "http://second:2")
	clone.logs.await(t, "refused (cloned)", "http://first:1", "http://second:2")
	if _, up := b.ConnectedSince(1); !up {
		t.Error("the first process was turned away")
	}
}

// Ensure that calls which change something need a member that the configuration binds.
func TestTransport_Call_anonymous(t *testing.T) {
	a, b := start(t, 1, disk(1, 1)), answering(start(t, 2, disk(2, 1)))
	b.SetPeers(boundTo(a, b))
	a.SetPeers(boundTo(a, b))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := a.Call(ctx, 2, "echo", nil, mostAnswer); err != nil {
		t.Errorf("a bound member: %v", err)
	}
	for _, self := range []identity.Claim{{}, {Cluster: cluster}, {Cluster: cluster, Storage: consensus.StorageID{1}}} {
		_, err := transport.CallURL(ctx, transport.Options{Self: self}, b.url, "echo", nil, mostAnswer)
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "anonymous") {
			t.Errorf("%v: got %v, want a refusal", &self, err)
		}
	}
	nonMember := start(t, 9, disk(9, 1))
	if _, err := nonMember.CallURL(ctx, b.url, "echo", nil, mostAnswer); err == nil || !strings.Contains(err.Error(), "unbound") {
		t.Errorf("a non-member: got %v, want a refusal", err)
	}
}

// Ensure that a process that only says that it is a later life of a member, or the one that was met last, takes nothing from
// the member: he is not heard, nothing of him is remembered, and the member, which answers at its address, goes on when it
// starts again.
func TestTransport_handshake_laterLifeIsSaid(t *testing.T) {
	for _, row := range []struct {
		name string
		life consensus.Life
	}{
		{"the next one", consensus.Life{Boots: 6, Nonce: 66}},
		{"one far ahead", consensus.Life{Boots: 1 << 60, Nonce: 66}},
		{"the last one", consensus.Life{Boots: 5, Nonce: 2005}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var mu sync.Mutex
			var highest consensus.Life
			quick := func(o *transport.Options) { o.Times.DeadAfter = time.Second }
			keep := func(o *transport.Options) {
				o.Identity.Remember = func(seen []identity.Seen) error {
					mu.Lock()
					defer mu.Unlock()
					for _, s := range seen {
						highest = s.Life
					}
					return nil
				}
			}
			a, b := start(t, 1, disk(1, 1), quick, keep), start(t, 2, disk(2, 5), quick)
			members := boundTo(a, b)
			a.SetPeers(members)
			b.SetPeers(members)
			a.waitFor(2)
			b.waitFor(1)
			_ = b.Close()
			receive(t, a.lost, "the word that member 2 is gone")
			impostor := start(t, 2, disk(2, 5), func(o *transport.Options) { o.Self.Life = row.life })
			impostor.SetPeers(members)
			impostor.waitFor(1)
			if row.life.Boots > 5 {
				impostor.Send([]consensus.Message{{Kind: consensus.MsgAppendReply, From: 2, To: 1, Term: 1}, heartbeat(2, 1, 1)})
			}
			l, err := net.Listen("tcp", strings.TrimPrefix(b.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			b = startOn(t, 2, l, disk(2, 6), func(o *transport.Options) {
				o.Identity.Refused = func(_ consensus.MemberID, r *identity.Refusal) bool {
					t.Errorf("the member was told %v", r)
					return true
				}
			})
			b.SetPeers(members)
			a.waitFor(2)
			b.waitFor(1)
			_ = impostor.Close()
			b.waitFor(1)
			b.Send([]consensus.Message{{Kind: consensus.MsgAppendReply, From: 2, To: 1, Term: 7}})
			if m := a.next(); m.Term != 7 {
				t.Errorf("got %+v of the impostor", m)
			}
			mu.Lock()
			defer mu.Unlock()
			if want := (consensus.Life{Boots: 6, Nonce: 2006}); highest != want {
				t.Errorf("life %v is remembered, want %v", highest, want)
			}
		})
	}
}
