package server

import (
	"net"
	"sync"

	"github.com/quorate/quorate/internal/lobby"
	"github.com/quorate/quorate/internal/transport"
)

// peerCrowd bounds the connections to the peer port. One too many is taken in, and the oldest on which no member has a stream
// is closed, of the address that has most: strangers push each other out, and members say who they are at once.
type peerCrowd struct{ lobby *lobby.Lobby }

func newPeerCrowd(limit int) *peerCrowd { return &peerCrowd{lobby.New(limit)} }

func (c *peerCrowd) counts() (open int, refused uint64) { return c.lobby.Counts() }

// listen bounds what l accepts. Encryption belongs above it, so that handshakes count, and seatedListener above that.
func (c *peerCrowd) listen(l net.Listener) net.Listener { return &peerListener{l, c} }

type peerListener struct {
	net.Listener
	crowd *peerCrowd
}

// Accept implements net.Listener.
func (l *peerListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	seat, pushed := l.crowd.lobby.Enter(conn)
	if pushed != nil {
		_ = pushed.Close()
	}
	return &peerConn{Conn: conn, seat: seat}, nil
}

// peerConn has its seat until it is closed.
type peerConn struct {
	net.Conn
	seat *lobby.Seat
}

// Close implements net.Conn.
func (c *peerConn) Close() error {
	c.seat.Leave()
	return c.Conn.Close()
}

// seatedListener lets the transport find the seat of a connection: it leads from the remote address to it. It stands above
// encryption, which looks at that address.
type seatedListener struct{ net.Listener }

// Accept implements net.Listener.
func (l seatedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for below := conn; ; {
		if found, ok := below.(*peerConn); ok {
			return seatedConn{conn, found.seat}, nil
		}
		wrapper, ok := below.(interface{ NetConn() net.Conn })
		if !ok {
			return conn, nil
		}
		below = wrapper.NetConn()
	}
}

type seatedConn struct {
	net.Conn
	seat *lobby.Seat
}

// RemoteAddr implements net.Conn.
func (c seatedConn) RemoteAddr() net.Addr {
	return &seatedAddr{Addr: c.Conn.RemoteAddr(), seat: c.seat}
}

// NetConn gives what is below, as tls.Conn does.
func (c seatedConn) NetConn() net.Conn { return c.Conn }

type seatedAddr struct {
	net.Addr
	seat *lobby.Seat
}

var _ transport.Doorkeeper = (*seatedAddr)(nil)

// Admit implements transport.Doorkeeper.
func (a *seatedAddr) Admit() (leave func()) {
	a.seat.Keep()
	var once sync.Once
	return func() { once.Do(a.seat.Unkeep) }
}
