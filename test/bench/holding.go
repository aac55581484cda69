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
	none     bool // no client attacks
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
	repeats  int           // how often each call names its metadata again
	allows   uint32        // bytes of answers that are read each allowEvery
	settings bool          // once the calls are open, settings are changed without end
	returns  bool          // the client comes back when the member closes a connection
	drops    time.Duration // after which it drops one itself, and comes back

	fill    filling // what the store has before
	callers int     // that make calls one after the other, and read the answers; then only path, message and size count
	step    step    // what they call, if it is more than one message
	writes  bool    // the calls of no callers change the store, too

	p99     time.Duration // that others' puts may have, if it is more than mostP99
	mayFail bool          // others' puts and renewals may fail
	files   float64       // MiB of pages of files, which the kernel takes back, that a member may have beside --memory
	because string        // of any of these

	drawn bool
	seed  uint64 // of one that is drawn
}

// step is what a caller does the i-th time.
type step func(ctx context.Context, conn *grpc.ClientConn, i int64) error

// kills is whether all members are killed after the attack: it may have left what is costly in their logs.
func (h *holding) kills() bool { return h.callers > 0 || h.writes }

// loggedIn stands for the token of a user.
const loggedIn = "logged in"

// filling is what a store has before an attack: keys of workPrefix, and on which lease they hang.
type filling struct {
	keys, bytes int
	rounds      int // in which all are put, if it is more than one
	lease       int64
}

// keyOf is one of these keys.
func keyOf(i int) []byte { return fmt.Appendf(nil, "%s%06d", workPrefix, i) }

const (
	workPrefix = "work/"
	// workBatch is how many keys one transaction puts, and workBytes how many bytes at most.
	workBatch = 100
	workBytes = 1_000_000
)

// begin makes the calls of an attack, and returns what ends them. The calls that a member refuses are what the attack is to
// show.
func (h *holding) begin(ctx context.Context, e *errand) (end func() tally) {
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	count := &counter{}
	if h.callers > 0 {
		h.loop(ctx, e, &working, count)
	} else {
		for i := range h.hosts * h.conns {
			from := fmt.Sprintf("127.0.2.%d", 1+i%h.hosts)
			working.Go(func() { h.keep(ctx, from, e, count) })
		}
	}
	return func() tally {
		cancel()
		working.Wait()
		return count.all
	}
}

// keep keeps one connection busy, or one after the other.
func (h *holding) keep(ctx context.Context, from string, e *errand, count *counter) {
	for again := true; again && ctx.Err() == nil; again = h.returns || h.drops > 0 {
		l, err := h.dial(from, e)
		if err != nil {
			count.refuse(err)
			cluster.Pause(ctx, 50*time.Millisecond)
			continue
		}
		count.dialled()
		stop := context.AfterFunc(ctx, func() { _ = l.Close() }) // one that the member has closed fails
		h.converse(ctx, l, count)
		if stop() {
			_ = l.Close()
		}
		if l.conn != nil {
			count.take(l.conn.Took())
		}
	}
}

// converse makes the calls of one connection, and returns when it is to be closed, or was.
func (h *holding) converse(ctx context.Context, l *line, count *counter) {
	ended := make(<-chan struct{}) // of HTTP/1 nothing is read
	if l.conn != nil {
		ended = l.conn.Ended()
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if h.allows > 0 {
		reading.Go(func() {
			for ctx.Err() == nil && l.conn.Allow(h.allows) == nil {
				cluster.Pause(ctx, allowEvery)
			}
		})
	}
	for range h.streams {
		if ctx.Err() != nil || l.send() != nil {
			break
		}
		count.call()
	}
	for h.settings && ctx.Err() == nil && l.conn.ChangeWindows() == nil {
		count.call()
	}
	var dropped <-chan time.Time
	if h.drops > 0 {
		dropped = time.After(h.drops)
	}
	select {
	case <-ctx.Done():
	case <-dropped:
	case <-ended:
	}
}

// allowEvery is how often a slow reader makes room: 20 kB each time are 2 MB/s.
const allowEvery = 10 * time.Millisecond

// line is a connection of an attack.
type line struct {
	send func() error   // makes one call
	conn *rawcalls.Conn // nil: it speaks HTTP/1
	io.Closer
}

// dial opens a connection.
func (h *holding) dial(from string, e *errand) (*line, error) {
	address, token := e.Client, h.token
	switch {
	case h.peer:
		address = e.Peer
	case h.secure:
		address = e.Secure
	}
	if token == loggedIn {
		token = e.Token
	}
	if h.json {
		c, err := rawcalls.DialPlain(from, address, h.secure)
		request := rawcalls.Request{Path: h.path, Token: token, Body: h.body(), Upgrade: h.upgrades}
		if h.part {
			request.Announced = len(request.Body) + 1000
		}
		return &line{send: func() error { return c.Send(request) }, Closer: c}, err
	}
	c, err := rawcalls.Dial(from, address, h.secure, h.window)
	call := h.call(token)
	return &line{send: func() error { return c.Send(call) }, conn: c, Closer: c}, err
}

func (h *holding) call(token string) rawcalls.Call {
	call := rawcalls.Call{Path: h.path, Token: token, Metadata: strings.Repeat("{", h.metadata), Repeats: h.repeats,
		Ends: h.ends, Messages: h.messages, Pause: h.pause, Resets: h.resets}
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
	for range max(1, f.rounds) {
		for at := 0; at < f.keys; at += batch {
			txn := &pb.TxnRequest{}
			for i := at; i < min(at+batch, f.keys); i++ {
				txn.Success = append(txn.Success,
					opOfPut(&pb.PutRequest{Key: keyOf(i), Value: make([]byte, f.bytes), Lease: f.lease}))
			}
			if _, err := kv.Txn(ctx, txn); err != nil {
				return fmt.Errorf("fill the store: %w", err)
			}
		}
	}
	return nil
}

func opOfPut(r *pb.PutRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: r}}
}

func opOfRange(r *pb.RangeRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
}

func opOfTxn(r *pb.TxnRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: r}}
}

// loop has callers of one host make calls one after the other.
func (h *holding) loop(ctx context.Context, e *errand, working *sync.WaitGroup, count *counter) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, 1)}}
	conn, err := grpc.NewClient("passthrough:///"+e.Client, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", to)
		}), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(512<<20)))
	if err != nil {
		count.refuse(err)
		return
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() }) // the process ends, too
	limit := bystanderLimit
	if h.step != nil {
		limit *= 6
	}
	for range h.callers {
		working.Go(func() {
			for ctx.Err() == nil {
				limited, done := context.WithTimeout(ctx, limit)
				err := h.again(limited, conn, count.call())
				done()
				if err != nil && ctx.Err() == nil {
					count.refuse(err)
					cluster.Pause(ctx, time.Millisecond)
				}
			}
		})
	}
}

// again makes the call of a caller whose number is i.
func (h *holding) again(ctx context.Context, conn *grpc.ClientConn, i int64) error {
	if h.step != nil {
		return h.step(ctx, conn, i)
	}
	// An answer is of no interest: what it has is unknown fields of a message without any.
	return conn.Invoke(ctx, h.path, h.message(h.size), &pb.StatusRequest{})
}
