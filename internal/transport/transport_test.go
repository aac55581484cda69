package transport_test

import (
	"bytes"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/transport"
)

func TestTransport_Send_orderPerPeer(t *testing.T) {
	members := []*member{start(t, 1), start(t, 2), start(t, 3)}
	acquaint(members...)
	const each = 5000
	var senders sync.WaitGroup
	for _, m := range members {
		senders.Go(func() {
			for i := consensus.Index(1); i <= each; i++ {
				var batch []consensus.Message
				for _, other := range members {
					if other != m {
						batch = append(batch, appendMessage(m.id, other.id, i, 100))
					}
				}
				m.Send(batch)
				if i%512 == 0 {
					// Stay within the queue: what is tested is that a connection loses nothing.
					waitForQueue(m)
				}
			}
		})
	}
	for _, m := range members {
		next := map[consensus.MemberID]consensus.Index{}
		for range 2 * each {
			got := m.next()
			next[got.From]++
			if want := next[got.From]; got.Match.Index != want {
				t.Fatalf("member %s got message %d of %s, want %d", m.id, got.Match.Index, got.From, want)
			}
			if len(got.Entries) != 1 || len(got.Entries[0].Payload) != 100 {
				t.Fatalf("member %s got entries %v, want one of 100 bytes", m.id, got.Entries)
			}
		}
	}
	senders.Wait()
	for _, m := range members {
		for _, s := range m.Stats().Peers {
			if s.Dropped != 0 || s.Sent.Messages != each || s.Received.Messages != each {
				t.Errorf("member %s and %s: %+v, want %d messages each way and none dropped", m.id, s.Peer, s, each)
			}
			if s.Sent.Frames > s.Sent.Messages {
				t.Errorf("more frames than messages: %+v", s)
			}
		}
		none(t, m.lost, "lost peer")
	}
}

// waitForQueue yields until the queues of m are empty.
func waitForQueue(m *member) {
	for {
		waiting := 0
		for _, s := range m.Stats().Peers {
			waiting += s.WaitingMessages
		}
		if waiting == 0 {
			return
		}
		osYield()
	}
}

func TestTransport_Send_largeEntry(t *testing.T) {
	a, b := start(t, 1), start(t, 2)
	acquaint(a, b)
	want := []consensus.Message{
		appendMessage(1, 2, 1, 10), appendMessage(1, 2, 2, 8<<20), appendMessage(1, 2, 3, 8<<20, 8<<20, 1),
		appendMessage(1, 2, 6, 10),
	}
	a.Send(want)
	for _, w := range want {
		got := b.next()
		if got.Match != w.Match || len(got.Entries) != len(w.Entries) {
			t.Fatalf("got message at %s with %d entries, want %s with %d",
				got.Match, len(got.Entries), w.Match, len(w.Entries))
		}
		for i := range got.Entries {
			if !bytes.Equal(got.Entries[i].Payload, w.Entries[i].Payload) {
				t.Fatalf("payload of entry %d differs", got.Entries[i].Index)
			}
		}
	}
}

func TestTransport_Send_heartbeatOvertakesBulk(t *testing.T) {
	a, b := start(t, 1), start(t, 2)
	heard, bulk := make(chan struct{}), make(chan struct{}, 100)
	b.receive = func(messages []consensus.Message) {
		for _, m := range messages {
			if m.Kind == consensus.MsgHeartbeat {
				close(heard)
				return
			}
			// The ordered stream is blocked until the heartbeat has overtaken it.
			<-heard
			bulk <- struct{}{}
		}
	}
	acquaint(a, b)
	for i := consensus.Index(1); i <= 4; i++ {
		a.Send([]consensus.Message{appendMessage(1, 2, i, 4<<20)})
	}
	a.Send([]consensus.Message{heartbeat(1, 2, 1)})
	receive(t, heard, "the heartbeat")
	for range 4 {
		receive(t, bulk, "a bulky message")
	}
	if s := a.Stats().Peers[0]; s.SentExpress.Messages != 1 {
		t.Errorf("got %d messages on the express stream, want 1", s.SentExpress.Messages)
	}
}

func TestTransport_Send_fullQueueDrops(t *testing.T) {
	a, b := start(t, 1, func(o *transport.Options) { o.Queue.Messages = 10 }), start(t, 2)
	release := make(chan struct{})
	b.receive = func([]consensus.Message) { <-release }
	acquaint(a, b)
	for a.Stats().Peers[0].Dropped == 0 {
		a.Send([]consensus.Message{appendMessage(1, 2, 1, 100<<10)})
	}
	if s := a.Stats().Peers[0]; s.WaitingMessages > 10 {
		t.Errorf("%d messages wait, want at most 10", s.WaitingMessages)
	}
	close(release)
}

func TestTransport_Send_unknownPeerIsCounted(t *testing.T) {
	a := start(t, 1)
	a.Send([]consensus.Message{heartbeat(1, 9, 1)})
	if got := a.Stats().Dropped; got != 1 {
		t.Errorf("dropped %d, want 1", got)
	}
}

func TestTransport_Send_nonMemberIsAnswered(t *testing.T) {
	// Member 1 has forgotten member 2, which does not know it yet and goes on asking.
	a, b := start(t, 1), start(t, 2)
	b.SetPeers([]consensus.Member{{ID: 1, PeerURLs: []string{a.url}}})
	b.waitFor(1)
	b.Send([]consensus.Message{heartbeat(2, 1, 7)})
	if got := a.next(); got.Round != 7 {
		t.Fatalf("got %+v, want round 7", got)
	}
	a.Send([]consensus.Message{{Kind: consensus.MsgRemoved, From: 1, To: 2}})
	if got := b.next(); got.Kind != consensus.MsgRemoved || got.From != 1 {
		t.Errorf("got %+v, want the tombstone of member 1", got)
	}
}

func TestTransport_SetPeers_dropsInGoodOrder(t *testing.T) {
	a, b := start(t, 1), start(t, 2)
	acquaint(a, b)
	a.Send([]consensus.Message{heartbeat(1, 2, 9)}) // once it has arrived, b has asked a whether the stream is its own
	if got := b.next(); got.Round != 9 {
		t.Fatalf("got round %d, want 9", got.Round)
	}
	a.Send([]consensus.Message{heartbeat(1, 2, 1), heartbeat(1, 2, 2)})
	a.SetPeers(nil)
	// Messages that were queued before still arrive, and no member believes that another one died.
	for want := uint64(1); want <= 2; want++ {
		if got := b.next(); got.Round != want {
			t.Fatalf("got round %d, want %d", got.Round, want)
		}
	}
	if _, up := a.ConnectedSince(2); up {
		t.Error("still connected with a dropped peer")
	}
	// The stream of 2 to 1 goes on.
	b.Send([]consensus.Message{heartbeat(2, 1, 3)})
	if got := a.next(); got.Round != 3 {
		t.Fatalf("got round %d, want 3", got.Round)
	}
	none(t, a.lost, "lost peer")
	none(t, b.lost, "lost peer")
}

func TestTransport_SetPeers_newURL(t *testing.T) {
	a, b := start(t, 1), start(t, 2)
	acquaint(a, b)
	moved := start(t, 2)
	a.SetPeers([]consensus.Member{{ID: 2, PeerURLs: []string{moved.url}}})
	// Until the old stream has ended messages may still take it: repeat, as consensus does.
	for round := uint64(1); ; round++ {
		a.Send([]consensus.Message{heartbeat(1, 2, round)})
		select {
		case <-moved.messages:
			none(t, a.lost, "lost peer")
			none(t, b.lost, "lost peer")
			return
		default:
			osYield()
		}
	}
}

func TestTransport_SetPeers_severalURLs(t *testing.T) {
	gone := testnet.Address(t)
	a, b, other := start(t, 1), start(t, 2), start(t, 3)
	// No process at the first, another one at the second.
	a.SetPeers([]consensus.Member{{ID: 2, PeerURLs: []string{"http://" + gone, other.url, b.url}}})
	a.waitFor(2)
	a.Send([]consensus.Message{heartbeat(1, 2, 1)})
	if got := b.next(); got.Round != 1 {
		t.Errorf("got %+v, want round 1", got)
	}
}

func TestTransport_unixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peer.sock")
	stale, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = stale.Close()
	l, err := transport.Listen("unix://"+path, nil)
	if err != nil {
		t.Fatalf("a socket file without a listener must not be in the way: %v", err)
	}
	if _, err := transport.Listen("unix://"+path, nil); !errors.Is(err, transport.ErrAddressUsed) {
		t.Errorf("got %v, want %v", err, transport.ErrAddressUsed)
	}
	a, b := start(t, 1), startOn(t, 2, l)
	b.url = "unix://" + path
	acquaint(a, b)
	a.Send([]consensus.Message{heartbeat(1, 2, 1)})
	b.next()
}

func TestNew_badListenURL(t *testing.T) {
	a := start(t, 1)
	for _, row := range []struct {
		name, url string
		want      error
	}{
		{"a port in use is named as such", a.url, transport.ErrAddressUsed},
		{"https needs a configuration", "https://127.0.0.1:0", transport.ErrNeedsTLS},
		{"a URL needs a port", "http://127.0.0.1", transport.ErrBadURL},
		{"a URL has no path", "http://127.0.0.1:0/raft", transport.ErrBadURL},
		{"only known schemes are accepted", "ftp://127.0.0.1:0", transport.ErrBadURL},
		{"a socket needs a path", "unix://", transport.ErrBadURL},
	} {
		o := transport.Options{Self: identity.Claim{Member: 2, Cluster: cluster},
			ListenURLs: []string{"http://127.0.0.1:0", row.url}}
		if _, err := transport.New(o); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
	}
}
