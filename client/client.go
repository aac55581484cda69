package client

import (
	"context"
	"maps"
	"slices"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/quorate/quorate/api/quoratepb"
)

// Config is clientv3's: endpoints, TLS, timeouts, logger.
type Config = clientv3.Config

// Client is a clientv3.Client whose writes are applied once, and which follows its cluster when members are replaced. It may be
// used concurrently.
type Client struct {
	*clientv3.Client
	writer *writer
	conns  *conns
	follow context.CancelFunc
	done   sync.WaitGroup
}

// New returns a client. It does not wait for a connection: the first call does.
func New(config Config) (*Client, error) {
	follower := newFollower()
	config.DialOptions = append(slices.Clone(config.DialOptions), grpc.WithStatsHandler(connections{follower}))
	plain, err := clientv3.New(config)
	if err != nil {
		return nil, err
	}
	c := &Client{Client: plain, conns: &conns{plain: plain, byEndpoint: map[string]*grpc.ClientConn{}}}
	follower.lead(c.conns)
	c.writer = newWriter(plain.Ctx(), follower, c.conns.writer)
	plain.KV = clientv3.NewKVFromKVClient(&remote{KVClient: clientv3.RetryKVClient(plain), writer: c.writer}, plain)
	ctx, cancel := context.WithCancel(plain.Ctx())
	c.follow = cancel
	c.done.Go(func() { follower.run(ctx) })
	return c, nil
}

// Close retires the sessions and closes all connections. Writes without an answer fail; those that were sent, with an
// InDoubtError.
func (c *Client) Close() error {
	c.writer.close()
	c.follow()
	c.done.Wait()
	c.conns.close()
	return c.Client.Close()
}

// conns has one connection for each endpoint, so that the client can choose the member of a stream of writes.
type conns struct {
	plain      *clientv3.Client
	mu         sync.Mutex
	byEndpoint map[string]*grpc.ClientConn
}

// writer returns the Writer service at an endpoint. The connection is made by the first call.
func (c *conns) writer(endpoint string) (quoratepb.WriterClient, error) {
	conn, err := c.to(endpoint)
	if err != nil {
		return nil, err
	}
	return quoratepb.NewWriterClient(conn), nil
}

// to returns the connection to an endpoint.
func (c *conns) to(endpoint string) (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn := c.byEndpoint[endpoint]
	if conn == nil {
		var err error
		if conn, err = c.plain.Dial(endpoint); err != nil {
			return nil, err
		}
		c.byEndpoint[endpoint] = conn
	}
	// The caller has its own backoff. A connection that is being made has none to reset, and gRPC's method must not run while
	// it is: it walks the addresses of the connection without a lock.
	if conn.GetState() == connectivity.TransientFailure {
		conn.ResetConnectBackoff()
	}
	return conn, nil
}

// Endpoints implements ways.
func (c *conns) Endpoints() []string { return c.plain.Endpoints() }

// SetEndpoints implements ways.
func (c *conns) SetEndpoints(endpoints ...string) { c.plain.SetEndpoints(endpoints...) }

// Opened implements ways.
func (c *conns) Opened() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var open []string
	for _, endpoint := range slices.Sorted(maps.Keys(c.byEndpoint)) {
		if c.byEndpoint[endpoint].GetState() == connectivity.Ready {
			open = append(open, endpoint)
		}
	}
	if c.plain.ActiveConnection().GetState() == connectivity.Ready {
		open = append(open, "")
	}
	return open
}

// List implements ways.
func (c *conns) List(ctx context.Context, endpoint string, linearizable bool) (*pb.MemberListResponse, error) {
	conn := c.plain.ActiveConnection()
	if endpoint != "" {
		var err error
		if conn, err = c.to(endpoint); err != nil {
			return nil, err
		}
	}
	return pb.NewClusterClient(conn).MemberList(ctx, &pb.MemberListRequest{Linearizable: linearizable})
}

// Keep implements ways.
func (c *conns) Keep(endpoints []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for endpoint, conn := range c.byEndpoint {
		if !slices.Contains(endpoints, endpoint) {
			_ = conn.Close()
			delete(c.byEndpoint, endpoint)
		}
	}
}

func (c *conns) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.byEndpoint {
		_ = conn.Close()
	}
	clear(c.byEndpoint)
}
