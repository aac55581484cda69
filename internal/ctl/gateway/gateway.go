package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/limits/admission"
)

const (
	// maxConns is how many connections are forwarded at once, and maxHostConns how many of one host. Each takes two files.
	maxConns     = 16_384
	maxHostConns = maxConns / 8 * 7
	// dialTimeout is how long a member may take to accept a connection, before another one is tried.
	dialTimeout = 5 * time.Second
	// acceptPause follows a connection that could not be accepted, because the process has no file left for example.
	acceptPause = 100 * time.Millisecond
)

// Options of a gateway.
type Options struct {
	Endpoints  []Endpoint    // of the members
	RetryDelay time.Duration // for how long a member that accepts no connection is avoided
	Logger     *slog.Logger

	// Dial connects to a member; nil: over TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Now is the clock; nil: that of the system.
	Now func() time.Time
}

// Gateway forwards connections to members, to one after the other.
type Gateway struct {
	options Options
	members *members
	bound   *admission.HostBound

	mu      sync.Mutex
	open    map[net.Conn]struct{} // of clients and to members
	alone   bool                  // the last attempt found no member
	running sync.WaitGroup
}

// New makes a gateway, which begins with Serve.
func New(o Options) *Gateway {
	if o.Dial == nil {
		o.Dial = (&tcp{}).dial
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Gateway{
		options: o, members: newMembers(o.Endpoints, o.RetryDelay),
		bound: admission.NewHostBound(maxConns, maxHostConns), open: map[net.Conn]struct{}{},
	}
}

type tcp struct{ net.Dialer }

func (d *tcp) dial(ctx context.Context, address string) (net.Conn, error) {
	return d.DialContext(ctx, "tcp", address)
}

// Serve forwards what the listener accepts until the context ends, and closes the listener and all connections then.
func (g *Gateway) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	defer g.running.Wait()
	defer g.closeAll()
	g.options.Logger.InfoContext(ctx, "ready to proxy client requests", "address", listener.Addr().String(),
		"endpoints", g.members.addresses())
	for {
		conn, err := listener.Accept()
		if err == nil {
			g.admit(ctx, conn)
			continue
		}
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return ctx.Err()
		}
		g.options.Logger.WarnContext(ctx, "a connection could not be accepted", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(acceptPause):
		}
	}
}

// admit forwards a connection in the background, unless there are too many.
func (g *Gateway) admit(ctx context.Context, client net.Conn) {
	host := admission.Host(client.RemoteAddr())
	leave, entered := g.bound.Enter(host)
	if !entered {
		g.options.Logger.WarnContext(ctx, "refused a connection: there are too many", "host", host)
		_ = client.Close()
		return
	}
	g.running.Go(func() {
		defer leave()
		g.forward(ctx, client)
	})
}

// forward connects a client with a member until one of them, or the gateway, ends that.
func (g *Gateway) forward(ctx context.Context, client net.Conn) {
	defer g.track(ctx, client)()
	member := g.connect(ctx)
	if member == nil {
		return
	}
	defer g.track(ctx, member)()
	var both sync.WaitGroup
	both.Go(func() { pass(client, member) })
	pass(member, client)
	both.Wait()
}

// track closes a connection when the gateway ends, or when what it returns is called.
func (g *Gateway) track(ctx context.Context, conn net.Conn) func() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[conn] = struct{}{}
	if ctx.Err() != nil { // closeAll may be over
		_ = conn.Close()
	}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.open, conn)
		_ = conn.Close()
	}
}

func (g *Gateway) closeAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for conn := range g.open {
		_ = conn.Close()
	}
}

// connect returns a connection to a member, nil if none accepts one.
func (g *Gateway) connect(ctx context.Context) net.Conn {
	for _, m := range g.members.inOrder(g.options.Now()) {
		bounded, cancel := context.WithTimeout(ctx, dialTimeout)
		conn, err := g.options.Dial(bounded, m)
		cancel()
		if ctx.Err() != nil {
			if conn != nil {
				_ = conn.Close()
			}
			return nil
		}
		if g.members.note(m, err == nil, g.options.Now()) {
			g.told(ctx, m, err)
		}
		if err == nil {
			g.setAlone(false)
			return conn
		}
	}
	if g.setAlone(true) { // clients ask again and again
		g.options.Logger.WarnContext(ctx, "no member accepts connections", "endpoints", g.members.addresses())
	}
	return nil
}

// setAlone remembers whether there is no member, and returns whether that is news.
func (g *Gateway) setAlone(alone bool) (news bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	news, g.alone = alone != g.alone, alone
	return news
}

// told writes that a member began or ceased to accept connections.
func (g *Gateway) told(ctx context.Context, member string, err error) {
	if err == nil {
		g.options.Logger.InfoContext(ctx, "a member accepts connections again", "endpoint", member)
		return
	}
	g.options.Logger.WarnContext(ctx, "a member accepts no connections, and is avoided for a while", "endpoint", member,
		"pause", g.options.RetryDelay, "err", err)
}

// pass copies until the source ends, and tells the other side that nothing more comes. If copying fails, the other direction is
// of no use, either.
func pass(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err == nil && ok && half.CloseWrite() == nil {
		return
	}
	_ = to.Close()
	_ = from.Close()
}
