package portmux

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/limits/admission"
)

// Mux splits the connections of one listener between a gRPC server and an HTTP server by their first bytes: HTTP/2
// begins with a fixed preface. gRPC is never served through net/http, which costs several times as much, so HTTP/2
// that is not gRPC is refused by the gRPC server.
//
//	listener --> accept --> peek 3 bytes --+-- "PRI" --> GRPC()
//	             bounded    (a goroutine)  +-- else  --> HTTP()
//
// TLS, if any, ends below: the listener hands out decrypted connections.
type Mux struct {
	listener net.Listener
	grpc     *muxListener
	http     *muxListener
	silent   *admission.Unidentified
	evicted  *atomic.Uint64
}

// maxSilent is how many connections may be between accept and their first request byte, TLS handshakes included. An honest
// client sends that byte within milliseconds.
const maxSilent = 1024

// prefaceStart tells HTTP/2 from every HTTP/1 request: no method begins with it.
const prefaceStart = "PRI"

// httpBytes is what a connection takes more if it is one of HTTP: two buffers, a goroutine, and a request with its headers.
const httpBytes = 24 << 10

// peekTimeout bounds how long a connection may stay silent before it is given up.
const peekTimeout = 10 * time.Second

// New splits listener. Serve makes it work.
func New(listener net.Listener) *Mux {
	return &Mux{listener: listener, grpc: newMuxListener(listener.Addr()), http: newMuxListener(listener.Addr()),
		silent: admission.NewUnidentified(maxSilent), evicted: new(atomic.Uint64)}
}

// GRPC and HTTP are the two listeners to serve.
func (m *Mux) GRPC() net.Listener { return m.grpc }
func (m *Mux) HTTP() net.Listener { return m.http }

// Serve accepts until the listener fails or Close was called, which gives nil.
func (m *Mux) Serve() error {
	defer m.grpc.Close()
	defer m.http.Close()
	for {
		conn, err := m.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if temporary, ok := err.(interface{ Temporary() bool }); ok && temporary.Temporary() {
			time.Sleep(5 * time.Millisecond) // out of file descriptors, mostly: other connections may end
			continue
		}
		if err != nil {
			return err
		}
		slot, evicted := m.silent.Add(conn, 1)
		for _, c := range evicted {
			m.evicted.Add(1)
			go c.Close() // it may be in the middle of a handshake
		}
		go m.route(conn, slot.Remove)
	}
}

// Close stops accepting. Connections that were handed out live on.
func (m *Mux) Close() error { return m.listener.Close() }

// CountSilent has the connections counted that are closed because too many newer ones have not said yet what they want. It
// must be called before Serve.
func (m *Mux) CountSilent(count *atomic.Uint64) { m.evicted = count }

func (m *Mux) route(conn net.Conn, known func()) {
	peeked := &peekedConn{Conn: conn}
	if err := conn.SetReadDeadline(time.Now().Add(peekTimeout)); err != nil {
		known()
		conn.Close()
		return
	}
	var start [len(prefaceStart)]byte
	n, err := io.ReadFull(conn, start[:])
	known()
	if n == 0 || conn.SetReadDeadline(time.Time{}) != nil {
		conn.Close()
		return
	}
	peeked.start = start[:n]
	target := m.http
	if err == nil && string(start[:]) == prefaceStart {
		target = m.grpc
	}
	if target == m.http && !admission.Charge(conn, httpBytes) {
		conn.Close()
		return
	}
	if !target.deliver(peeked) {
		conn.Close()
	}
}

// peekedConn gives the peeked bytes again.
type peekedConn struct {
	net.Conn
	start []byte
}

// Read implements net.Conn.
func (c *peekedConn) Read(p []byte) (int, error) {
	if len(c.start) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.start)
	c.start = c.start[n:]
	return n, nil
}

// NetConn gives what is below, as tls.Conn does.
func (c *peekedConn) NetConn() net.Conn { return c.Conn }

// muxListener is one side of a Mux.
type muxListener struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newMuxListener(addr net.Addr) *muxListener {
	return &muxListener{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// deliver hands a connection over; false if no server accepts any more.
func (l *muxListener) deliver(conn net.Conn) bool {
	select {
	case l.conns <- conn:
		return true
	case <-l.closed:
		return false
	}
}

// Accept implements net.Listener.
func (l *muxListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *muxListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *muxListener) Addr() net.Addr { return l.addr }
