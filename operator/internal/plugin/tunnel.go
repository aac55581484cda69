package plugin

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	forwarding "k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	streamed "k8s.io/streaming/pkg/httpstream"
)

// tunnel is a connection to the API server that leads to the ports of one pod. It opens when it is needed, and again after it
// was lost. Its methods are for any goroutine.
type tunnel struct {
	dialer httpstream.Dialer

	mu       sync.Mutex
	opening  chan struct{} // holds a token while nobody opens it
	conn     *link
	closed   bool
	requests atomic.Int64
}

// link is a connection to the API server, until it is left.
type link struct {
	httpstream.Connection
	left chan struct{}
	why  error // once it is left
	once sync.Once
}

func (l *link) leave(why error) {
	l.once.Do(func() {
		l.why = why
		close(l.left)
		_ = l.Close()
	})
}

// tunnel returns the tunnel to a pod: by WebSocket, and by SPDY where the API server has no WebSocket for it.
func (k *Kubernetes) tunnel(pod string) (*tunnel, error) {
	pods := k.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(k.Namespace)
	at := pods.Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(k.Config)
	if err != nil {
		return nil, err
	}
	old := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
	web, err := forwarding.NewSPDYOverWebsocketDialer(at, k.Config)
	if err != nil {
		return nil, err
	}
	return newTunnel(forwarding.NewFallbackDialer(web, old, func(err error) bool {
		return streamed.IsUpgradeFailure(err) || streamed.IsHTTPSProxyError(err)
	})), nil
}

func newTunnel(d httpstream.Dialer) *tunnel {
	t := &tunnel{dialer: d, opening: make(chan struct{}, 1)}
	t.opening <- struct{}{}
	return t
}

// connection is the tunnel's own one, which is opened if it is not.
func (t *tunnel) connection(ctx context.Context) (*link, error) {
	select {
	case <-t.opening:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type result struct {
		conn *link
		err  error
	}
	done := make(chan result, 1)
	go func() { // the library's dialer knows no context: it ends by itself, and then the next one may open
		conn, err := t.opened()
		t.opening <- struct{}{}
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		return r.conn, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (t *tunnel) opened() (*link, error) {
	t.mu.Lock()
	conn, closed := t.conn, t.closed
	t.mu.Unlock()
	if closed {
		return nil, net.ErrClosed
	}
	if conn != nil {
		select {
		case <-conn.CloseChan():
		default:
			return conn, nil
		}
	}
	fresh, _, err := t.dialer.Dial(forwarding.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	conn = &link{Connection: fresh, left: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	t.conn = conn
	return conn, nil
}

// leave closes the connection of a port that was refused. Nobody reads what was sent there, and that blocks all others: the
// next one opens another connection.
func (t *tunnel) leave(conn *link, why error) {
	t.mu.Lock()
	if t.conn == conn {
		t.conn = nil
	}
	t.mu.Unlock()
	conn.leave(why)
}

func (t *tunnel) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.conn != nil {
		_ = t.conn.Close()
	}
}

// dial opens a connection to a port of the pod. That nothing listens there is the error of its first read: it is told late.
func (t *tunnel) dial(ctx context.Context, port uint16) (net.Conn, error) {
	through, err := t.connection(ctx)
	if err != nil {
		return nil, err
	}
	data, faults, err := t.streams(ctx, through, port)
	if err != nil {
		return nil, err
	}
	here, there := net.Pipe()
	c := &forwarded{Conn: here}
	go t.carry(c, through, there, data, faults)
	return c, nil
}

// streams makes the two streams of a connection to a port. The library's call knows no context, and may wait for half a minute:
// then the link is left.
func (t *tunnel) streams(ctx context.Context, through *link, port uint16) (data, faults httpstream.Stream, err error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(int(port)))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.FormatInt(t.requests.Add(1), 10))
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	type result struct {
		data, faults httpstream.Stream
		err          error
	}
	done := make(chan result, 1)
	go func() {
		faults, err := through.CreateStream(headers)
		if err != nil {
			done <- result{err: err}
			return
		}
		_ = faults.Close() // nothing is written to it
		headers.Set(corev1.StreamType, corev1.StreamTypeData)
		data, err := through.CreateStream(headers)
		if err != nil {
			_ = faults.Reset()
			through.RemoveStreams(faults)
		}
		done <- result{data, faults, err}
	}()
	select {
	case r := <-done:
		return r.data, r.faults, r.err
	case <-ctx.Done():
		t.leave(through, ctx.Err())
		return nil, nil, ctx.Err()
	case <-through.left:
		return nil, nil, through.why
	}
}

// forwarded is the near end of a connection through a tunnel.
type forwarded struct {
	net.Conn
	why atomic.Pointer[error] // it ended
}

func (c *forwarded) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if why := c.why.Load(); n == 0 && errors.Is(err, io.EOF) && why != nil {
		return 0, *why
	}
	return n, err
}

const (
	mostFault     = 4 << 10 // of a text from the kubelet
	faultPatience = time.Second
)

// carry copies both ways until one side ends.
func (t *tunnel) carry(c *forwarded, through *link, there net.Conn, data, faults httpstream.Stream) {
	said := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(io.LimitReader(faults, mostFault))
		said <- string(text)
	}()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.Copy(data, there)
		_ = data.Close()
	}()
	_, _ = io.Copy(there, data)
	_ = data.Reset() // or what is not read of it keeps the fault from coming
	select {
	case text := <-said:
		if text != "" {
			why := errors.New(text)
			c.why.Store(&why)
			t.leave(through, why)
		}
	case <-through.left:
		c.why.Store(&through.why)
	case <-time.After(faultPatience):
	}
	_ = there.Close()
	<-sent
	_ = faults.Reset()
	through.RemoveStreams(data, faults)
}
