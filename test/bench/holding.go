package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/rawcalls"
)

// holding is an attack on what a member holds for its clients.
type holding struct {
	name     string
	path     string
	message  func(size int) proto.Message
	size     int    // of the message
	window   uint32 // that the client leaves for answers
	part     bool   // the message is half-sent
	ends     bool   // the client says that nothing follows
	metadata int
	hosts    int // addresses that it comes from
	conns    int // of each
	streams  int // of each connection

	messages int           // of each call, if it is more than one
	pause    time.Duration // of each call before its last message
	resets   bool          // the client gives each call up at once
	secure   bool          // by TLS
	json     bool          // by the JSON gateway: message is a body of any text
	upgrades bool          // to a websocket
	users    bool          // there are users, and the client has not logged in
	token    string        // that it shows; loggedIn: one of a login
	peer     bool          // to the peer port, where no member knows the client

	fill    filling // what the store has before
	callers int     // that make calls one after the other, and read the answers; nothing of the above counts then
	writes  bool    // the calls of no callers change the store, too

	p99     time.Duration // that others' puts may have, if it is more than mostP99
	mayFail bool          // others' puts and renewals may fail
	because string        // of either
}

// kills is whether all members are killed after the attack: it may have left what is costly in their logs.
func (h *holding) kills() bool { return h.callers > 0 || h.writes }

// loggedIn stands for the token of a user.
const loggedIn = "logged in"

// filling is what a store has before an attack: keys of workPrefix, and on which lease they hang.
type filling struct {
	keys, bytes int
	lease       int64
}

const (
	workPrefix = "work/"
	// workBatch is how many keys one transaction puts, and workBytes how many bytes at most.
	workBatch = 100
	workBytes = 1_000_000
)

// begin makes the calls of an attack, and returns what ends them. What a member refuses is what is to be seen.
func (h *holding) begin(ctx context.Context, m *cluster.Member, token string) (end func() error) {
	if h.callers > 0 {
		return h.loop(ctx, m.ClientAddr)
	}
	var mu sync.Mutex
	var open []io.Closer
	var working sync.WaitGroup
	address := m.ClientAddr
	switch {
	case h.peer:
		address = m.PeerAddr
	case h.secure:
		address = m.SecureAddr
	}
	if h.token != loggedIn {
		token = h.token
	}
	for i := range h.hosts * h.conns {
		working.Go(func() {
			send, c, err := h.dial(fmt.Sprintf("127.0.2.%d", 1+i%h.hosts), address, token)
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			for range h.streams {
				if ctx.Err() != nil || send() != nil {
					return
				}
			}
		})
	}
	return func() error {
		mu.Lock()
		for _, c := range open {
			_ = c.Close() // those that the member has closed fail
		}
		mu.Unlock()
		working.Wait()
		return nil
	}
}

// dial opens a connection, and returns what makes one call on it.
func (h *holding) dial(from, address, token string) (send func() error, closes io.Closer, err error) {
	if h.json {
		c, err := rawcalls.DialPlain(from, address, h.secure)
		request := rawcalls.Request{Path: h.path, Token: token, Body: h.body(), Upgrade: h.upgrades}
		if h.part {
			request.Announced = len(request.Body) + 1000
		}
		return func() error { return c.Send(request) }, c, err
	}
	c, err := rawcalls.Dial(from, address, h.secure, h.window)
	call := h.call(token)
	return func() error { return c.Send(call) }, c, err
}

func (h *holding) call(token string) rawcalls.Call {
	call := rawcalls.Call{Path: h.path, Token: token, Metadata: strings.Repeat("{", h.metadata), Ends: h.ends,
		Messages: h.messages, Pause: h.pause, Resets: h.resets}
	if h.message != nil {
		call.Message, _ = proto.Marshal(h.message(h.size))
	}
	if h.part {
		call.Announced, call.Ends = len(call.Message)+1000, false
	}
	return call
}

// body is the message as JSON.
func (h *holding) body() []byte {
	if h.message == nil {
		return nil
	}
	text, _ := protojson.Marshal(h.message(h.size))
	return text
}

// fillStore puts what the store is to have.
func (f *filling) fillStore(ctx context.Context, kv pb.KVClient, leases pb.LeaseClient) error {
	if f.keys == 0 {
		return nil
	}
	if f.lease != 0 {
		if _, err := leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: f.lease, TTL: 3600}); err != nil {
			return err
		}
	}
	batch := min(workBatch, max(1, workBytes/(f.bytes+1)))
	for at := 0; at < f.keys; at += batch {
		txn := &pb.TxnRequest{}
		for i := at; i < min(at+batch, f.keys); i++ {
			put := &pb.PutRequest{Key: fmt.Appendf(nil, "%s%06d", workPrefix, i), Value: make([]byte, f.bytes), Lease: f.lease}
			txn.Success = append(txn.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}})
		}
		if _, err := kv.Txn(ctx, txn); err != nil {
			return fmt.Errorf("fill the store: %w", err)
		}
	}
	return nil
}

// loop has callers of one host make calls one after the other, and returns what ends them.
func (h *holding) loop(ctx context.Context, address string) (end func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, 1)}}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", to)
		}), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		cancel()
		return func() error { return err }
	}
	for range h.callers {
		working.Go(func() {
			for ctx.Err() == nil {
				limited, done := context.WithTimeout(ctx, bystanderLimit)
				// An answer is of no interest: what it has is unknown fields of a message without any.
				if err := conn.Invoke(limited, h.path, h.message(h.size), &pb.StatusRequest{}); err != nil {
					cluster.Pause(ctx, time.Millisecond)
				}
				done()
			}
		})
	}
	return func() error {
		cancel()
		working.Wait()
		return conn.Close()
	}
}
