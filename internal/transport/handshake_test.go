package transport_test

import (
	"context"
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/transport"
)

func TestTransport_handshake_refused(t *testing.T) {
	foreign := func(o *transport.Options) { o.Self.Cluster = 0xc2 }
	for _, row := range []struct {
		name     string
		dialler  *member
		listener *member
		to       consensus.MemberID
		newer    bool
		want     error
	}{
		{"a member of another cluster", start(t, 1, foreign), start(t, 2), 2, false, errors.New("foreign-cluster")},
		{"another member at the address", start(t, 1), start(t, 3), 2, false, transport.ErrWrongMember},
		{"a namesake", start(t, 2), start(t, 2), 2, false, nil},
		{"a newer version", start(t, 1), start(t, 2), 2, true, transport.ErrNewerVersion},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := row.dialler, row.listener
			if row.newer {
				a.SpeakForTesting(transport.ProtocolVersionForTesting + 1)
			}
			a.SetPeers([]consensus.Member{{ID: row.to, PeerURLs: []string{b.url}}})
			if row.want == nil {
				// A member is not its own peer: nothing is dialled at all.
				if n := len(a.Stats().Peers); n != 0 {
					t.Errorf("%d peers, want none", n)
				}
				return
			}
			reason := row.want.Error()
			// The refused side logs it as an error, the refusing side too, and neither for every retry.
			a.logs.await(t, "level=ERROR", "peer refused", reason)
			b.logs.await(t, "level=ERROR", "refused a connection", reason)
			for a.Stats().Peers[0].Failures < 6 {
				osYield()
			}
			if n := a.logs.await(t, "peer refused"); n != 1 {
				t.Errorf("logged %d times by the refused side, want once:\n%s", n, a.logs)
			}
			if n := b.logs.await(t, "refused a connection"); n != 1 {
				t.Errorf("logged %d times by the refusing side, want once:\n%s", n, b.logs)
			}
			a.Send([]consensus.Message{heartbeat(a.id, row.to, 1)})
			if _, up := a.ConnectedSince(row.to); up {
				t.Error("connected in spite of it")
			}
			none(t, b.messages, "message of a refused member")
			none(t, a.lost, "lost peer")
		})
	}
}

func TestTransport_handshake_newerListener(t *testing.T) {
	a, b := start(t, 1), start(t, 2)
	b.SpeakForTesting(transport.ProtocolVersionForTesting + 1)
	a.SetPeers([]consensus.Member{{ID: 2, PeerURLs: []string{b.url}}})
	a.logs.await(t, "level=ERROR", "peer refused", transport.ErrNewerVersion.Error())
	if _, up := a.ConnectedSince(2); up {
		t.Error("connected in spite of it")
	}
}

func TestTransport_SetPeers_uselessURLs(t *testing.T) {
	a := start(t, 1)
	a.SetPeers([]consensus.Member{
		{ID: 2, PeerURLs: []string{"https://127.0.0.1:1"}},
		{ID: 3},
		{ID: 4, PeerURLs: []string{"gopher://127.0.0.1:1"}},
	})
	a.logs.await(t, "peer=2", transport.ErrNeedsTLS.Error())
	a.logs.await(t, "peer=3", transport.ErrNoAddress.Error())
	a.logs.await(t, "peer=4", transport.ErrBadURL.Error())
	if _, err := a.CallURL(context.Background(), "https://127.0.0.1:1", "x", nil, mostAnswer); !errors.Is(err, transport.ErrNeedsTLS) {
		t.Errorf("got %v, want %v", err, transport.ErrNeedsTLS)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(transport.AppendMessagesForTesting(nil, []consensus.Message{
		heartbeat(1, 2, 3), appendMessage(1, 2, 3, 10, 0, 100)}))
	f.Add([]byte{2, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, frame []byte) {
		// No input may panic or be believed about sizes. The checksum is also tried away.
		_, _, _ = transport.OpenFrameForTesting(frame)
		_, _ = transport.DecodeHelloForTesting(frame)
		_, _, _, _ = transport.DecodeCallForTesting(frame)
		messages, err := transport.DecodeMessagesForTesting(frame)
		if err != nil {
			return
		}
		again := transport.AppendMessagesForTesting(nil, messages)
		_, body, err := transport.OpenFrameForTesting(again)
		if err != nil {
			t.Fatalf("own frame does not open: %v", err)
		}
		if back, err := transport.DecodeMessagesForTesting(body); err != nil || len(back) != len(messages) {
			t.Fatalf("%d messages came back as %d: %v", len(messages), len(back), err)
		}
	})
}

func TestFrame_flippedBits(t *testing.T) {
	frame := transport.AppendMessagesForTesting(nil, []consensus.Message{appendMessage(1, 2, 3, 100)})
	for i := range frame {
		for bit := range 8 {
			frame[i] ^= 1 << bit
			if _, _, err := transport.OpenFrameForTesting(frame); !errors.Is(err, transport.ErrCorruptFrame) {
				t.Fatalf("bit %d of byte %d flipped: got %v, want %v", bit, i, err, transport.ErrCorruptFrame)
			}
			frame[i] ^= 1 << bit
		}
	}
}
