package grpcproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	etcdnamespace "go.etcd.io/etcd/client/v3/namespace"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // clients may compress

	"github.com/quorate/quorate/internal/base/tlsconn"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/rpc/front"
	"github.com/quorate/quorate/internal/rpc/h2"
	"github.com/quorate/quorate/internal/rpc/portmux"
)

const (
	// maxConns is how many connections clients may have, maxHostConns how many those of one host, for what the system has of
	// them: --memory bounds them, too.
	maxConns     = 16_384
	maxHostConns = maxConns / 8 * 7
	// maxHeaderBytes bounds the headers of a call, unpacked.
	maxHeaderBytes = 16 << 10
	// streamWindow and connWindow are how much a client may send before it is taken, as at a member.
	streamWindow = 1 << 20
	connWindow   = 8 << 20
	// memberWindow is how much a member may send on a connection before it was read.
	memberWindow = 4 << 20
	// handshakeTimeout bounds how long a new connection may take until HTTP/2 is agreed upon.
	handshakeTimeout = 10 * time.Second
	// dialTimeout bounds one attempt to connect to a member.
	dialTimeout = 5 * time.Second
	// gracePeriod is how long calls that are open may go on when the proxy ends.
	gracePeriod = 500 * time.Millisecond
)

// firstMessage bounds how long the request of a call may take, as a member does.
var firstMessage = admission.FirstMessageLimits{Timeout: 30 * time.Second, Many: 512, ManyTimeout: 2 * time.Second}

// Options of a proxy.
type Options struct {
	Members   Members
	Clients   Clients
	Naming    Naming
	Memory    memory.ProxyShares // the zero value: those of memory.DefaultMost
	Namespace string             // prefix of all keys; empty: none
	LogCalls  bool               // one line for each call, without what is in it
	Profiles  bool               // serve /debug/pprof/
	Logger    *slog.Logger
}

// Members says how to connect to the cluster.
type Members struct {
	Endpoints    []string
	SyncInterval time.Duration // between two questions to the members who they are; zero: they are the endpoints
	TLS          *tls.Config   // nil: none

	KeepAliveTime, KeepAliveTimeout time.Duration // of the connections; a time of zero: none
	PermitWithoutStream             bool          // keep alive connections without calls, too
	MaxRecvBytes                    int           // of one message from a member
}

// Clients says what clients may do.
type Clients struct {
	KeepAliveMinTime, KeepAliveInterval, KeepAliveTimeout time.Duration // as the server's flags of that name; zero: none
	MaxConcurrentStreams                                  uint32        // of one connection
	MaxSendBytes                                          int           // of one message to a member
}

// Proxy forwards calls. New makes one.
type Proxy struct {
	options Options
	client  *clientv3.Client // for what the proxy itself asks: its keys have the prefix, too
	calls   *forwarder
	server  *front.Server
	self    *ownClient
	web     *web
	counts  *counts
	conns   *admission.HostBound
	metrics *admission.Ledger // of connections for metrics

	abandoned admission.Abandoned

	silent  atomic.Uint64 // connections that were closed because newer ones had not said either what they want
	stop    context.CancelFunc
	running sync.WaitGroup
}

// New connects to the members, which need not be there yet, and begins what the options ask for.
func New(o Options) (*Proxy, error) {
	if o.Memory == (memory.ProxyShares{}) {
		o.Memory = memory.DivideProxy(memory.DefaultMost)
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: o.Members.Endpoints, DialTimeout: dialTimeout, TLS: o.Members.TLS, Logger: zap.NewNop(),
		DialKeepAliveTime: o.Members.KeepAliveTime, DialKeepAliveTimeout: o.Members.KeepAliveTimeout,
		PermitWithoutStream: o.Members.PermitWithoutStream, MaxCallRecvMsgSize: o.Members.MaxRecvBytes,
		DialOptions: []grpc.DialOption{
			grpc.WithMaxHeaderListSize(maxHeaderBytes), grpc.WithUserAgent("quorate-grpc-proxy"),
			grpc.WithStaticStreamWindowSize(windowBytes), grpc.WithStaticConnWindowSize(memberWindow),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("--endpoints %s: %w", strings.Join(o.Members.Endpoints, ","), err)
	}
	if o.Namespace != "" {
		client.KV = etcdnamespace.NewKV(client.KV, o.Namespace)
		client.Watcher = etcdnamespace.NewWatcher(client.Watcher, o.Namespace)
		client.Lease = etcdnamespace.NewLease(client.Lease, o.Namespace)
	}
	p := &Proxy{options: o, client: client, counts: newCounts(), conns: admission.NewHostBound(maxConns, maxHostConns),
		metrics: admission.NewLedger(o.Memory.Clients.Metrics)}
	p.calls = newForwarder(client.ActiveConnection(), &o, p.counts)
	p.calls.naming = &naming{Naming: o.Naming, client: client, logger: o.Logger}
	p.server = p.newServer()
	if p.self, err = newOwnClient(p.server, &p.running); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	p.web = &web{members: client, self: p.self.Client, tls: o.Members.TLS, counts: p.counts, logger: o.Logger}
	p.showBounds()
	p.begin()
	return p, nil
}

func newForwarder(members *grpc.ClientConn, o *Options, c *counts) *forwarder {
	f := &forwarder{
		members: members, names: namespace(o.Namespace), counts: c,
		options: []grpc.CallOption{grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(o.Members.MaxRecvBytes),
			grpc.MaxCallSendMsgSize(math.MaxInt32)},
		held: admission.NewLedger(o.Memory.Clients.Total), renewals: admission.NewLedger(o.Memory.Clients.Renewals),
		first: admission.NewFirstMessages(firstMessage),
	}
	if o.LogCalls {
		f.log = o.Logger
	}
	return f
}

// showBounds adds what is bounded to the metrics.
func (p *Proxy) showBounds() {
	p.counts.bound("connection", p.conns.Counts)
	p.counts.bound("call", p.calls.callCounts)
	p.counts.bound("held_bytes", func() (int, uint64) {
		s := p.calls.held.Stats()
		return int(s.Bytes), s.Refused
	})
	p.counts.bound("unsent", p.calls.first.Counts)
	p.counts.bound("silent", func() (int, uint64) { return 0, p.silent.Load() })
}

// begin starts what runs until Close.
func (p *Proxy) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	p.running.Go(func() { p.calls.first.Run(ctx.Done()) })
	if interval := p.options.Members.SyncInterval; interval > 0 {
		p.running.Go(func() { syncEndpoints(ctx, p.client, interval, p.options.Logger) })
	}
	if p.options.Naming.Prefix != "" {
		p.running.Go(func() { p.calls.naming.register(ctx) })
		p.running.Go(func() { p.calls.naming.watchNamed(ctx) })
	}
}

// newServer makes a server of the kind that a member has.
func (p *Proxy) newServer() *front.Server {
	c, held := &p.options.Clients, p.calls.held
	return front.New(front.Options{
		HTTP2: h2.Options{
			MaxStreams: c.MaxConcurrentStreams, MaxHeaderBytes: maxHeaderBytes, StreamWindow: streamWindow,
			ConnWindow: connWindow, Handshake: handshakeTimeout, Hosts: &p.abandoned,
			Tab:   func(c net.Conn) h2.Tab { return held.Open(admission.Host(c.RemoteAddr())) },
			Pings: h2.Pings{MinPing: c.KeepAliveMinTime, Interval: c.KeepAliveInterval, Timeout: c.KeepAliveTimeout},
		},
		Codec: rawCodec{}, Credentials: tlsconn.Credentials(), Others: p.calls.describe, MaxMessage: c.MaxSendBytes,
		Unsent: p.calls.first.Wait,
	})
}

// Bounded is a listener with the bounds on connections of clients, which are encrypted above it if secure.
func (p *Proxy) Bounded(l net.Listener, secure bool) net.Listener {
	bytes := int64(admission.ConnBytes)
	if secure {
		bytes = admission.TLSConnBytes
	}
	return p.calls.held.Listen(p.conns.Listen(l), bytes)
}

// BoundedMetrics is Bounded for a listener of ServeMetrics, encrypted or not. Such connections have room of their own.
func (p *Proxy) BoundedMetrics(l net.Listener, _ bool) net.Listener {
	return p.metrics.Listen(p.conns.Listen(l), admission.HTTPConnBytes)
}

// ServeClients answers clients, gRPC and HTTP, until the listener is closed or the proxy ends.
func (p *Proxy) ServeClients(l net.Listener) error {
	mux := portmux.New(l)
	mux.CountSilent(&p.silent)
	p.running.Go(func() { _ = p.server.Serve(mux.GRPC()) }) // it ends with the server, or with the mux
	served := make(chan error, 1)
	p.running.Go(func() { served <- p.web.serve(mux.HTTP(), p.options.Profiles) })
	err := mux.Serve()
	<-served
	return err
}

// ServeMetrics answers HTTP alone, without profiles, until the listener is closed.
func (p *Proxy) ServeMetrics(l net.Listener) error { return p.web.serve(l, false) }

// Close ends all calls, after a moment in which they may end by themselves, and the connections to the members.
func (p *Proxy) Close() error {
	p.stop()
	ended := make(chan struct{})
	go func() {
		p.server.GracefulStop()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(gracePeriod):
		p.server.Stop()
		<-ended
	}
	p.self.close()
	err := p.client.Close()
	p.running.Wait()
	return err
}
