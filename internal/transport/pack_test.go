package transport_test

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/transport"
)

// scale counts what arrives at a listener.
type scale struct {
	net.Listener
	bytes atomic.Int64
}

type scaleConn struct {
	net.Conn
	scale *scale
}

func (s *scale) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	return scaleConn{conn, s}, err
}

func (c scaleConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.scale.bytes.Add(int64(n))
	return n, err
}

// pair is two members, of which the second one's listener counts.
func pair(t *testing.T, first, second transport.Packing) (a, b *member, s *scale) {
	t.Helper()
	l, err := net.Listen("tcp", testnet.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	s = &scale{Listener: l}
	a = start(t, 1, func(o *transport.Options) { o.Packing = first })
	b = startOn(t, 2, s, func(o *transport.Options) { o.Packing = second })
	return a, b, s
}

// Ensure that messages to a member that takes packed frames are packed, arrive as they were sent, and are counted packed and
// plain; and that members with different settings, or without memory for it, send each other plain ones.
func TestTransport_Send_packed(t *testing.T) {
	const messages, size = 200, 5000
	always, never := transport.Packing{When: transport.PackAlways}, transport.Packing{When: transport.PackNever}
	for _, tc := range []struct {
		name          string
		first, second transport.Packing
		want          bool
	}{
		{"both", always, always, true},
		{"the sender does not", never, always, false},
		{"the receiver does not", always, never, false},
		{"the sender has no memory", transport.Packing{When: transport.PackAlways, Bytes: 1}, always, false},
		{"the receiver has no memory", always, transport.Packing{When: transport.PackAlways, Bytes: 1}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b, s := pair(t, tc.first, tc.second)
			acquaint(a, b)
			before := s.bytes.Load()
			for i := range messages {
				m := appendMessage(1, 2, consensus.Index(i), 100)
				m.Entries[0].Payload = append(m.Entries[0].Payload, bytes.Repeat([]byte("pod "), size/4)...)
				a.Send([]consensus.Message{m})
				got := b.next()
				if got.Match != m.Match || !slices.EqualFunc(got.Entries, m.Entries, func(x, y consensus.Entry) bool {
					return x.Index == y.Index && bytes.Equal(x.Payload, y.Payload)
				}) {
					t.Fatalf("message %d came as %+v", i, got)
				}
			}
			wire := s.bytes.Load() - before
			sent, received := a.Stats().Peers[0].Sent, b.Stats().Peers[0].Received
			for sent.Messages < received.Messages && t.Context().Err() == nil { // it counts after it has sent
				runtime.Gosched()
				sent = a.Stats().Peers[0].Sent
			}
			if sent.Plain < messages*size || received.Plain != sent.Plain || received.Bytes != sent.Bytes {
				t.Errorf("sent %+v, received %+v", sent, received)
			}
			if packed := sent.Bytes < sent.Plain/4; packed != tc.want || wire < messages*size/4 != tc.want {
				t.Errorf("%d bytes on the wire; sent %+v, want packed %v", wire, sent, tc.want)
			}
			if taken := a.PackingBytes() > 0 && b.PackingBytes() > 0; tc.want && !taken {
				t.Error("memory for it is not counted")
			}
			_, _ = a.Close(), b.Close()
			if a.PackingBytes() != 0 || b.PackingBytes() != 0 {
				t.Errorf("%d and %d bytes are counted after the end", a.PackingBytes(), b.PackingBytes())
			}
		})
	}
}

// Ensure that a snapshot is packed, too.
func TestTransport_SendSnapshot_packed(t *testing.T) {
	const size = 8 << 20
	always := transport.Packing{When: transport.PackAlways}
	a, b, s := pair(t, always, always)
	content := bytes.Repeat([]byte("pod "), size/4)
	arrived := make(chan bool, 1)
	b.snapshot = func(_ consensus.MemberID, _ consensus.SnapshotMeta, r io.Reader) error {
		got, err := io.ReadAll(r)
		arrived <- bytes.Equal(got, content)
		return err
	}
	acquaint(a, b)
	before := s.bytes.Load()
	if err := a.SendSnapshot(t.Context(), 2, meta, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if !receive(t, arrived, "the snapshot") {
		t.Error("it arrived as something else")
	}
	if wire := s.bytes.Load() - before; wire > size/20 {
		t.Errorf("%d bytes on the wire for %d", wire, size)
	}
}

// Ensure that processes that no member knows, however many streams they open, leave half of the memory for packing to members,
// whose streams are packed; and that a stream counts as a member's once its sender is known to be one.
func TestTransport_Send_packedBesideNonMembers(t *testing.T) {
	const unpacker = 320 << 10
	packs := func(bytes int64) func(*transport.Options) {
		return func(o *transport.Options) { o.Packing = transport.Packing{When: transport.PackAlways, Bytes: bytes} }
	}
	a := start(t, 1, packs(3*unpacker))
	listed := func(m *member) consensus.Member { return consensus.Member{ID: m.id, PeerURLs: []string{m.url}} }
	opens := func(id consensus.MemberID, want int64) *member {
		t.Helper()
		m := start(t, id, packs(16<<20))
		m.SetPeers([]consensus.Member{listed(a)})
		m.waitFor(a.id)
		if got := a.PackingBytes(); got != want*unpacker {
			t.Errorf("with a stream of %v, streams have %d bytes, not %d", id, got, want*unpacker)
		}
		return m
	}
	sends := func(m *member) {
		t.Helper()
		message := appendMessage(m.id, a.id, 1, 100)
		message.Entries[0].Payload = bytes.Repeat([]byte("pod "), 5_000)
		m.Send([]consensus.Message{message})
		a.next()
		if traffic := a.Stats().Peers[0].Received; traffic.Bytes > traffic.Plain/2 {
			t.Errorf("%v sends %d bytes as %d", m.id, traffic.Plain, traffic.Bytes)
		}
	}
	first := opens(10, 1)
	opens(11, 1)
	opens(12, 1)
	a.SetPeers([]consensus.Member{listed(a), listed(first)})
	sends(first) // and is known
	opens(13, 2)
	second := start(t, 2, packs(16<<20))
	a.SetPeers([]consensus.Member{listed(a), listed(second)})
	second.SetPeers([]consensus.Member{listed(a)})
	second.waitFor(a.id)
	sends(second)
	if got := a.PackingBytes(); got != 3*unpacker {
		t.Errorf("two members' streams and a non-member's have %d bytes", got)
	}
}
