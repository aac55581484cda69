package transport

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// idle is the handler of a transport to which nothing is said.
type idle struct{}

func (idle) Receive([]consensus.Message) {}
func (idle) ReceiveSnapshot(consensus.MemberID, consensus.SnapshotMeta, io.Reader) error {
	return errors.ErrUnsupported
}
func (idle) Call(context.Context, string, []byte) ([]byte, error) { return nil, errors.ErrUnsupported }
func (idle) PeerLost(consensus.MemberID)                          {}

// long is longer than any test takes that does not wait for it.
const long = 20 * time.Minute

// member1 starts member 1, which waits for answers and for signs of life for long.
func member1(t *testing.T) *Transport {
	t.Helper()
	tr, err := New(Options{Self: identity.Claim{Member: 1, Cluster: 1}, Handler: idle{}, Times: Times{DeadAfter: long, Dial: long},
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close() })
	return tr
}

// silent is a URL at which connections are taken and nothing is said.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

// soon fails the test if what is done takes until something ends for which no goroutine there need wait.
func soon(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Errorf("%s: it waits", what)
	}
}

// Ensure that nothing waits for a question at the address of a silent member, or for a sign of another life, once the stream or call
// that it is for has ended: neither the one that caused the question nor the others. Their messages would be held meanwhile.
func TestTransport_evidence_endsWithStream(t *testing.T) {
	tr := member1(t)
	tr.Configure(&consensus.Config{Members: []consensus.Member{{ID: 2, PeerURLs: []string{silent(t)}}}})
	ended, end := context.WithCancel(t.Context())
	end()
	h := hello{claim: identity.Claim{Member: 2, Cluster: 1, Storage: consensus.StorageID{2}, Life: consensus.Life{Boots: 9}}}
	for range 2 {
		soon(t, "a stream, or a call", func() {
			if evidence := tr.evidenceOf(ended, &h); evidence != identity.Said {
				t.Errorf("got %v", evidence)
			}
		})
	}
	in := &incoming{claim: h.claim, kind: streamOrdered}
	soon(t, "a frame", func() {
		if err := (&reader{t: tr, ctx: ended, claim: &in.claim, in: in}).prove(); err != nil {
			t.Error(err)
		}
	})
	other := &incoming{claim: h.claim, kind: streamOrdered, evidence: identity.Dialled}
	other.claim.Life = consensus.Life{Boots: 8}
	tr.mu.Lock() // Configure looks at the streams in a goroutine of its own
	tr.incoming[streamKey{from: 2, kind: streamOrdered}] = other
	tr.mu.Unlock()
	soon(t, "another life", func() {
		if err := tr.welcome(ended, &h.claim, identity.Dialled); err == nil {
			t.Error("who has gone is welcome")
		}
	})
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.incoming[streamKey{from: 2, kind: streamOrdered}] != other {
		t.Error("the stream of the other life was ended by one that has gone")
	}
}

// Ensure that those who ask for a member's streams, and go before it has answered, take no question from the member's own.
func TestPeer_confirmed_askersWhoGo(t *testing.T) {
	asked := member1(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	member, err := New(Options{Self: identity.Claim{Member: 2, Cluster: 1}, Handler: idle{}, Listeners: []net.Listener{l},
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = member.Close() })
	member.Configure(&consensus.Config{Members: []consensus.Member{{ID: 1, PeerURLs: []string{silent(t)}}}})
	asked.Configure(&consensus.Config{Members: []consensus.Member{{ID: 2, PeerURLs: []string{"http://" + l.Addr().String()}}}})
	gone, leave := context.WithCancel(t.Context())
	leave()
	p := asked.peer(2)
	for range 100 {
		liar := newToken()
		if p.confirmed(gone, &liar) {
			t.Fatal("a liar is confirmed")
		}
		for q, _ := p.confirmations.ask(time.Unix(0, 0)); q != nil; q, _ = p.confirmations.ask(time.Unix(0, 0)) {
			<-q.done
		}
	}
	own := member.peer(1).token
	soon(t, "the member's own stream", func() {
		if !p.confirmed(t.Context(), &own) {
			t.Error("the member's own stream is not confirmed")
		}
	})
}

// Ensure that of several processes at the addresses of a member each confirms its own streams, whichever one asked.
func TestConfirmations_note_several(t *testing.T) {
	one, other := newToken(), newToken()
	var v confirmations
	challenge := [challengeBytes]byte{1}
	v.hear(challenge, one.answer(challenge[:]), []byte("none"), other.answer(challenge[:]))
	if !v.cover(&one) || !v.cover(&other) || v.cover(&token{}) {
		t.Error("an answer does not cover its token, or covers another one")
	}
	if v.hear(challenge); !v.cover(&one) {
		t.Error("a question that nobody answered takes back an answer")
	}
}

// Ensure that a hello to which a later version has added something is read, and one that is held for its size alone is not.
func TestHello_long(t *testing.T) {
	own := hello{version: protocolVersion, claim: identity.Claim{Member: 2, Cluster: 1}, token: newToken()}
	for more, fits := range map[int]bool{0: true, 1 << 10: true, maxHelloBytes: false, 1 << 20: false} {
		frame := append(own.frame(), make([]byte, more)...)
		sealFrame(frame)
		if h, err := decodeHelloFrame(frame); (err == nil) != fits || fits && h.token != own.token {
			t.Errorf("%d bytes more: got %+v, %v", more, h, err)
		}
	}
}
