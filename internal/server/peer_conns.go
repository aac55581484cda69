package server

import (
	"net"
	"sync"

	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/transport"
)

// listenPeer bounds what l accepts. Encryption belongs above it, so that handshakes count, and slotListener above that.
func listenPeer(l net.Listener, conns *admission.Unidentified) net.Listener {
	return &peerListener{l, conns}
}

type peerListener struct {
	net.Listener
	conns *admission.Unidentified
}

// Accept implements net.Listener.
func (l *peerListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	slot, evicted := l.conns.Add(conn, peerConnBytes)
	closeConns(evicted)
	return &peerConn{Conn: conn, slot: slot}, nil
}

// peerConnBytes is what a connection to the peer port takes while nothing is asked: buffers of gRPC, goroutines, and TLS.
const peerConnBytes = 48 << 10

func closeConns(all []net.Conn) {
	for _, c := range all {
		_ = c.Close()
	}
}

// peerConn has its slot until it is closed.
type peerConn struct {
	net.Conn
	slot *admission.Slot
}

// Close implements net.Conn.
func (c *peerConn) Close() error {
	c.slot.Remove()
	return c.Conn.Close()
}

// slotListener lets the transport find the slot of a connection: it leads from the remote address to it. It stands above
// encryption, which looks at that address.
type slotListener struct{ net.Listener }

// Accept implements net.Listener.
func (l slotListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for below := conn; ; {
		if found, ok := below.(*peerConn); ok {
			return slotConn{conn, found.slot}, nil
		}
		wrapper, ok := below.(interface{ NetConn() net.Conn })
		if !ok {
			return conn, nil
		}
		below = wrapper.NetConn()
	}
}

type slotConn struct {
	net.Conn
	slot *admission.Slot
}

// RemoteAddr implements net.Conn.
func (c slotConn) RemoteAddr() net.Addr {
	return &slotAddr{Addr: c.Conn.RemoteAddr(), slot: c.slot}
}

// NetConn gives what is below, as tls.Conn does.
func (c slotConn) NetConn() net.Conn { return c.Conn }

type slotAddr struct {
	net.Addr
	slot *admission.Slot
}

var _ transport.ConnAdmitter = (*slotAddr)(nil)

// Admit implements transport.ConnAdmitter.
func (a *slotAddr) Admit() (leave func()) {
	a.slot.Pin()
	var once sync.Once
	return func() { once.Do(func() { closeConns(a.slot.Unpin()) }) }
}

// Hold implements transport.ConnAdmitter.
func (a *slotAddr) Hold(more int64) { closeConns(a.slot.Hold(more)) }
