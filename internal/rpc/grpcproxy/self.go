package grpcproxy

import (
	"context"
	"errors"
	"net"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/rpc/front"
)

// ownClient is a client of the proxy within its process, for /proxy/health: it goes the way of all clients but the network.
type ownClient struct {
	*clientv3.Client
	pipes *pipes
}

func newOwnClient(server *front.Server, running *sync.WaitGroup) (*ownClient, error) {
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"proxy:0"}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(p.dial)}})
	if err != nil {
		return nil, err
	}
	running.Go(func() { _ = server.Serve(p) }) // it ends with the server
	return &ownClient{client, p}, nil
}

func (c *ownClient) close() {
	_ = c.Client.Close() // its connection is gone with the server
	_ = c.pipes.Close()
}

// pipes is a listener that is dialled within the process.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

var errClosed = errors.New("grpcproxy: closed")

func (p *pipes) dial(ctx context.Context, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (*pipes) Addr() net.Addr { return pipeAddress{} }

type pipeAddress struct{}

// Network implements net.Addr.
func (pipeAddress) Network() string { return "pipe" }

// String implements net.Addr.
func (pipeAddress) String() string { return "pipe" }
