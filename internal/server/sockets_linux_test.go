package server

import (
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/transport"
)

// Ensure that every TCP port has the options that were asked for: two processes may share all ports if both ask for it, and
// none if one of them does not.
func TestServer_socketReusePort(t *testing.T) {
	client, web, metrics, peer := testnet.Address(t), testnet.Address(t), testnet.Address(t), testnet.Address(t)
	load := func(flags ...string) *Server {
		cfg, err := config.Load(append([]string{"--name=m", "--data-dir", filepath.Join(t.TempDir(), "d"),
			"--listen-client-urls=http://" + client + ",unix://" + filepath.Join(t.TempDir(), "s"),
			"--advertise-client-urls=http://" + client, "--listen-client-http-urls=http://" + web,
			"--listen-metrics-urls=http://" + metrics, "--listen-peer-urls=http://" + peer,
			"--initial-advertise-peer-urls=http://" + peer, "--initial-cluster=m=http://" + peer}, flags...), nil)
		if err != nil {
			t.Fatal(err)
		}
		limits := connLimits{clients: connBound(1), http: connBound(1), metrics: connBound(1), peers: admission.NewUnidentified(8 * peerConnBytes)}
		return &Server{cfg: cfg, logger: slog.New(slog.DiscardHandler), conns: limits, ctx: t.Context(),
			clients: newClientPorts(t.Context(), &cfg, limits, defaultBudgets(t, &cfg), nil)}
	}
	open := func(s *Server) error {
		peers, err := s.listenPeers()
		t.Cleanup(func() { closeAll(peers) })
		t.Cleanup(func() {
			closeAll(s.clients.listeners)
			for _, l := range s.clients.plain {
				_ = l.Close()
			}
		})
		return errors.Join(err, s.clients.listen())
	}
	for _, s := range []*Server{load("--socket-reuse-port"), load("--socket-reuse-port", "--socket-reuse-address")} {
		if err := open(s); err != nil {
			t.Errorf("with the option: %v", err)
		}
	}
	plain := load()
	if _, err := plain.listenPeers(); !errors.Is(err, transport.ErrAddressUsed) {
		t.Errorf("a peer port without the option: %v", err)
	}
	if err := plain.clients.listen(); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a client port without the option: %v", err)
	}
}

// Ensure that each option is set by its own flag. Go sets SO_REUSEADDR of every listener.
func TestSockets(t *testing.T) {
	for _, row := range []config.Listen{{}, {ReuseAddress: true}, {ReusePort: true}, {ReuseAddress: true, ReusePort: true}} {
		l, err := sockets(&row).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		conn, err := l.(*net.TCPListener).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var port, address int
		var portErr, addressErr error
		err = conn.Control(func(fd uintptr) {
			port, portErr = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT)
			address, addressErr = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR)
		})
		if err := errors.Join(err, portErr, addressErr, l.Close()); err != nil {
			t.Fatal(err)
		}
		if (port != 0) != row.ReusePort || address == 0 {
			t.Errorf("%+v: SO_REUSEPORT %d, SO_REUSEADDR %d", row, port, address)
		}
	}
}
