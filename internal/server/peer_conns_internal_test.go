package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/transport"
)

// deaf is the handler of a transport that only connects.
type deaf struct{}

func (deaf) Receive([]consensus.Message) {}
func (deaf) ReceiveSnapshot(consensus.MemberID, consensus.SnapshotMeta, io.Reader) error {
	return errors.ErrUnsupported
}
func (deaf) Call(context.Context, string, []byte) ([]byte, error) { return nil, errors.ErrUnsupported }
func (deaf) PeerLost(consensus.MemberID)                          {}

// openPeer is a process that connects to others, until the test ends.
func openPeer(t *testing.T, o transport.Options) *transport.Transport {
	t.Helper()
	o.Handler = deaf{}
	tr, err := transport.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close() })
	return tr
}

// silentDial opens a connection that says nothing.
func silentDial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// wantEnd waits until the other side has closed.
func wantEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !isReset(err) {
		t.Fatalf("got %v, want its end", err)
	}
}

func waitConnected(t *testing.T, from *transport.Transport, to consensus.MemberID) time.Time {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); time.Now().Before(late); <-time.After(time.Millisecond) {
		_, measured := from.RTT(to) // the other stream is up too
		if since, up := from.ConnectedSince(to); up && measured {
			return since
		}
	}
	t.Fatal("not connected")
	return time.Time{}
}

// Ensure that a flood of silent connections to an encrypted peer port neither ends the connections of members nor keeps a
// member out, though all come from one address.
func TestServer_listenPeers_flood(t *testing.T) {
	address := testnet.Address(t)
	cfg, err := config.Load([]string{"--name=m", "--data-dir", filepath.Join(t.TempDir(), "d"), "--peer-auto-tls",
		"--listen-peer-urls=https://" + address, "--initial-advertise-peer-urls=https://" + address,
		"--initial-cluster=m=https://" + address}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{cfg: cfg, logger: slog.New(slog.DiscardHandler), conns: connLimits{peers: admission.NewUnidentified(8 * peerConnBytes)},
		clients: new(clientPorts), ctx: t.Context()}
	if err := s.openCerts(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	listeners, err := s.listenPeers()
	if err != nil {
		t.Fatal(err)
	}
	open := func(id consensus.MemberID, listeners ...net.Listener) *transport.Transport {
		return openPeer(t, transport.Options{Self: identity.Claim{Member: id, Cluster: 1}, Listeners: listeners,
			TLS: transport.TLS{Dial: s.peerCerts.Dial}})
	}
	config := consensus.Config{Members: []consensus.Member{{ID: 1, PeerURLs: []string{"https://" + address}}}}
	member := func(id consensus.MemberID) *transport.Transport {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		config.Members = append(config.Members, consensus.Member{ID: id, PeerURLs: []string{"http://" + l.Addr().String()}})
		return open(id, l)
	}
	first := open(1, listeners...)
	before, after := member(2), member(3)
	first.Configure(&config)
	before.Configure(&config)
	since := waitConnected(t, before, 1)
	var flood []net.Conn
	for range 40 {
		flood = append(flood, silentDial(t, address))
	}
	for _, conn := range flood[:40-6] { // the member has two places
		wantEnd(t, conn)
	}
	after.Configure(&config)
	waitConnected(t, after, 1)
	if again, up := before.ConnectedSince(1); !up || again != since {
		t.Error("the member that was there before the flood was disconnected")
	}
	// The streams of the second member took the place of two connections, until it was known.
	if open, refused := s.conns.peers.Counts(); open < 6 || open > 8 || refused < 36 {
		t.Errorf("%d open, %d closed", open, refused)
	}
}

// Ensure that as many clients as there may be keep no client from the HTTP and metrics URLs, nor these from each other.
func TestClientPorts_listen_ownBounds(t *testing.T) {
	client, web, metrics := testnet.Address(t), testnet.Address(t), testnet.Address(t)
	peer := "http://" + testnet.Address(t)
	cfg, err := config.Load([]string{"--name=m", "--data-dir", filepath.Join(t.TempDir(), "d"),
		"--listen-client-urls=http://" + client, "--advertise-client-urls=http://" + client,
		"--listen-client-http-urls=http://" + web, "--listen-metrics-urls=http://" + metrics,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=m=" + peer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	limits := connLimits{clients: connBound(1), http: connBound(1), metrics: connBound(1)}
	s := newClientPorts(t.Context(), &cfg, limits, defaultBudgets(t, &cfg), nil)
	if err := s.listen(); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		address string
		l       net.Listener
	}{{client, s.listeners[0]}, {web, s.plain[0]}, {metrics, s.plain[1]}} {
		served := make(chan net.Conn, 1)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				conn, err := row.l.Accept()
				if err != nil {
					return
				}
				served <- conn
			}
		}()
		t.Cleanup(func() { _ = row.l.Close(); <-ended })
		silentDial(t, row.address)
		select {
		case conn := <-served:
			t.Cleanup(func() { conn.Close() })
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: nobody was let in", row.address)
		}
		wantEnd(t, silentDial(t, row.address))
	}
}

func defaultBudgets(t *testing.T, cfg *config.Config) *budgets {
	t.Helper()
	b, err := newBudgets(cfg, memory.Shares{})
	if err != nil {
		t.Fatal(err)
	}
	return &b
}
