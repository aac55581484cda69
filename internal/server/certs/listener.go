package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/base/logpace"
)

// handshakeTimeout bounds a handshake, and how long a connection may wait with its first byte.
const handshakeTimeout = 10 * time.Second

// Protocols are what a listener offers by ALPN, most wanted first.
var (
	// GRPC is for ports that speak nothing else.
	GRPC = []string{"h2"}
	// HTTP is for ports without gRPC.
	HTTP = []string{"http/1.1"}
	// GRPCAndHTTP prefers HTTP/1.1: gRPC clients offer h2 alone, while curl and browsers offer both and mean requests
	// that the gRPC server would refuse.
	GRPCAndHTTP = []string{"http/1.1", "h2"}
)

// maxReasons are logged at once: clients of one network often fail for different reasons.
const maxReasons = 10

// Listener is a listener that encrypts.
type Listener struct {
	net.Listener
	config *tls.Config
	kind   Kind
	logger *slog.Logger
	either bool // unencrypted connections are served too
	failed *logpace.Pace
	// refused is counted here where the chain of a certificate is not accepted, and by the Keeper where the rest is not.
	refused *atomic.Uint64
}

// Listen encrypts what l accepts.
func (k *Keeper) Listen(l net.Listener, protocols []string) *Listener {
	return &Listener{Listener: l, config: k.server(protocols), kind: k.kind, logger: k.logger,
		failed: &logpace.Pace{Burst: maxReasons}, refused: &k.refused}
}

// ListenEither encrypts those connections of l that ask for it, which shows in their first byte. The others are as
// unprotected as on any plain listener.
func (k *Keeper) ListenEither(l net.Listener, protocols []string) *Listener {
	listener := k.Listen(l, protocols)
	listener.either = true
	return listener
}

// Accept implements net.Listener. The handshake is left to the first use of the connection.
func (l *Listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: raw, listener: l}, nil
}

// conn shakes hands at its first use.
type conn struct {
	net.Conn // as accepted; deadlines are its own
	listener *Listener

	begun   sync.Once
	stream  io.ReadWriter // what there is to read and write, after begun
	failure error
	secured atomic.Pointer[tls.Conn]
}

// begin shakes hands.
func (c *conn) begin() error {
	c.begun.Do(func() {
		if c.stream, c.failure = c.negotiate(); c.failure != nil {
			c.listener.report(c.RemoteAddr(), c.failure)
		}
	})
	return c.failure
}

// recordHandshake is the first byte of every TLS connection, and of no other protocol that is served.
const recordHandshake = 0x16

func (c *conn) negotiate() (io.ReadWriter, error) {
	raw := c.Conn
	if c.listener.either {
		var first [1]byte
		if _, err := io.ReadFull(raw, first[:]); err != nil {
			return nil, err
		}
		raw = &replayed{Conn: raw, first: first[:]}
		if first[0] != recordHandshake {
			return raw, nil
		}
	}
	secured := tls.Server(raw, c.listener.config)
	c.secured.Store(secured)
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	return secured, secured.HandshakeContext(ctx)
}

// report tells of a failed handshake. Load balancers that only look whether a process listens are not worth a line.
func (l *Listener) report(from net.Addr, err error) {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		l.refused.Add(1)
	}
	const text = "rejected connection on "
	about := []any{"remote-addr", from.String(), "err", err}
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		l.logger.Debug(text+string(l.kind)+" endpoint", about...)
		return
	}
	if suppressed, ok := l.failed.Next(time.Now()); ok {
		if suppressed > 0 {
			about = append(about, "suppressed", suppressed)
		}
		l.logger.Warn(text+string(l.kind)+" endpoint", about...)
	}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if err := c.begin(); err != nil {
		return 0, err
	}
	return c.stream.Read(p)
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.begin(); err != nil {
		return 0, err
	}
	return c.stream.Write(p)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	if secured := c.secured.Load(); secured != nil {
		return secured.Close()
	}
	return c.Conn.Close()
}

// TLS shakes hands, if no goroutine did, and gives the encrypted connection; nil if this one is not encrypted.
func (c *conn) TLS() (*tls.Conn, error) {
	if err := c.begin(); err != nil {
		return nil, err
	}
	return c.secured.Load(), nil
}

// NetConn gives what is below, as tls.Conn does.
func (c *conn) NetConn() net.Conn { return c.Conn }

// replayed gives a byte again that was read to look at it.
type replayed struct {
	net.Conn
	first []byte
}

// Read implements net.Conn.
func (r *replayed) Read(p []byte) (int, error) {
	if len(r.first) == 0 {
		return r.Conn.Read(p)
	}
	n := copy(p, r.first)
	r.first = r.first[n:]
	return n, nil
}
