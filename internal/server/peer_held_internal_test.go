package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/transport"
)

// unknownPeer speaks HTTP/2 to a peer port by hand.
type unknownPeer struct {
	conn   net.Conn
	framer *http2.Framer
	stream uint32
}

// newUnknownPeer connects. The bytes of the other side are read and thrown away; their end ends the writes.
func newUnknownPeer(t *testing.T, address string) *unknownPeer {
	t.Helper()
	s := &unknownPeer{conn: silentDial(t, address)}
	go func() { _, _ = io.Copy(io.Discard, s.conn); _ = s.conn.Close() }()
	s.framer = http2.NewFramer(s.conn, nil)
	_, _ = io.WriteString(s.conn, http2.ClientPreface)
	_ = s.framer.WriteSettings()
	return s
}

// open opens a stream of a method.
func (s *unknownPeer) open(method string) error {
	s.stream += 2
	if s.stream == 2 {
		s.stream = 1
	}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/quorate.Peer/" + method},
		{":authority", "x"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	return s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: s.stream, BlockFragment: block.Bytes(), EndHeaders: true})
}

// part sends the begin of a message that has so many bytes.
func (s *unknownPeer) part(announced, sent int) error {
	data := make([]byte, 5+sent)
	binary.BigEndian.PutUint32(data[1:], uint32(announced))
	for len(data) > 0 {
		n := min(len(data), 16<<10)
		if err := s.framer.WriteData(s.stream, false, data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// Ensure that those who are no members hold no more on the peer port than its share, by half-sent messages, by streams and by
// connections, and that the member which is there stays.
func TestServer_listenPeers_share(t *testing.T) {
	const share = 4 << 20
	address := testnet.Address(t)
	cfg, err := config.Load([]string{"--name=m", "--data-dir", filepath.Join(t.TempDir(), "d"),
		"--listen-peer-urls=http://" + address, "--initial-advertise-peer-urls=http://" + address,
		"--initial-cluster=m=http://" + address}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{cfg: cfg, logger: slog.New(slog.DiscardHandler), conns: connLimits{peers: admission.NewUnidentified(share)},
		clients: new(clientPorts), ctx: t.Context()}
	listeners, err := s.listenPeers()
	if err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := &consensus.Config{Members: []consensus.Member{{ID: 1, PeerURLs: []string{"http://" + address}},
		{ID: 2, PeerURLs: []string{"http://" + other.Addr().String()}}}}
	first := openPeer(t, transport.Options{Self: identity.Claim{Member: 1, Cluster: 1}, Listeners: listeners, UnknownBytes: share})
	member := openPeer(t, transport.Options{Self: identity.Claim{Member: 2, Cluster: 1}, Listeners: []net.Listener{other}})
	first.Configure(config)
	member.Configure(config)
	since := waitConnected(t, member, 1)
	held := func() {
		t.Helper()
		if n := s.conns.peers.Held(); n > share+64<<10 { // of a read that is under way
			t.Fatalf("%d bytes are held, of a share of %d", n, share)
		}
	}
	for name, each := range map[string]func(*unknownPeer) error{
		"a half-sent hello":       func(a *unknownPeer) error { return errors.Join(a.open("Messages"), a.part(200<<20, 60<<10)) },
		"a half-sent call":        func(a *unknownPeer) error { return errors.Join(a.open("Call"), a.part(200<<20, 60<<10)) },
		"streams that say naught": func(a *unknownPeer) error { return a.open("Snapshot") },
	} {
		_, before := s.conns.peers.Counts()
		var evicted uint64
		for late := time.Now().Add(20 * time.Second); evicted < 3; {
			if time.Now().After(late) {
				t.Fatalf("%s: %d connections of unknown peers were closed", name, evicted)
			}
			a := newUnknownPeer(t, address)
			for range 250 {
				if each(a) != nil {
					break
				}
				held()
			}
			_, closed := s.conns.peers.Counts()
			evicted = closed - before
		}
	}
	if again, up := member.ConnectedSince(1); !up || again != since {
		t.Error("the member was disconnected")
	}
}
