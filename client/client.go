package client

import (
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/api/quoratepb"
)

// Config is clientv3's: endpoints, TLS, timeouts, logger.
type Config = clientv3.Config

// Client is a clientv3.Client whose writes are applied once. It may be used concurrently.
type Client struct {
	*clientv3.Client
	writer *writer
	conns  *conns
}

// New returns a client. It does not wait for a connection: the first call does.
func New(config Config) (*Client, error) {
	plain, err := clientv3.New(config)
	if err != nil {
		return nil, err
	}
	c := &Client{Client: plain, conns: &conns{plain: plain, byEndpoint: map[string]*grpc.ClientConn{}}}
	members := newDirectory(plain.Endpoints, plain.Cluster)
	c.writer = newWriter(plain.Ctx(), members, c.conns.writer)
	plain.KV = clientv3.NewKVFromKVClient(&remote{KVClient: clientv3.RetryKVClient(plain), writer: c.writer}, plain)
	return c, nil
}

// Close retires the sessions and closes all connections. Writes without an answer fail; those that were sent, with an
// InDoubtError.
func (c *Client) Close() error {
	c.writer.close()
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
	conn.ResetConnectBackoff() // the caller has its own backoff
	return quoratepb.NewWriterClient(conn), nil
}

func (c *conns) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.byEndpoint {
		_ = conn.Close()
	}
	clear(c.byEndpoint)
}
