package rpc_test

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc"
)

// deafStream is a client that sends many progress requests and does not read until it is told to.
type deafStream struct {
	ctx      context.Context
	requests int
	received atomic.Int64
	early    atomic.Int64 // requests that were taken although too many answers waited
	listens  chan struct{}
	sent     atomic.Int64
}

func (d *deafStream) RecvMsg(m any) error {
	n := int(d.received.Add(1))
	if n > d.requests {
		return io.EOF
	}
	select {
	case <-d.listens:
	default:
		if n > 300 {
			d.early.Add(1)
		}
	}
	request := m.(*pb.WatchRequest)
	if n == 1 {
		request.RequestUnion = &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte("k")}}
	} else {
		request.RequestUnion = &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}
	}
	return nil
}

func (d *deafStream) SendMsg(any) error {
	select {
	case <-d.listens:
	case <-d.ctx.Done():
		return d.ctx.Err()
	}
	d.sent.Add(1)
	return nil
}

func (d *deafStream) Context() context.Context     { return d.ctx }
func (d *deafStream) SetHeader(metadata.MD) error  { return nil }
func (d *deafStream) SendHeader(metadata.MD) error { return nil }
func (d *deafStream) SetTrailer(metadata.MD)       {}

// A client that keeps sending requests and does not read has some hundred answers in memory, not all: its requests are not
// taken until it reads. Then it gets all answers.
func TestWatch_requestsOfAClientThatDoesNotRead(t *testing.T) {
	backend := newMachineBackend(t)
	services := rpc.New(rpc.Options{Member: backend})
	defer services.Close()
	ctx, cancel := context.WithCancel(waitContext(t))
	defer cancel()
	addr := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}
	deaf := &deafStream{
		ctx: peer.NewContext(ctx, &peer.Peer{Addr: addr}), requests: 5000, listens: make(chan struct{}),
	}
	ended := make(chan error)
	go func() { ended <- rpc.ServeWatch(services, grpc.ServerStream(deaf)) }()
	for backend.Hub().Stats().WaitingBytes < 256*128 && ctx.Err() == nil {
		<-time.After(time.Millisecond)
	}
	<-time.After(50 * time.Millisecond) // for a receiver that would continue
	if deaf.early.Load() != 0 {
		t.Errorf("%d requests were taken although hundreds of answers were unread", deaf.early.Load())
	}
	close(deaf.listens)
	for deaf.sent.Load() < 5000 && ctx.Err() == nil {
		<-time.After(time.Millisecond)
	}
	if deaf.sent.Load() != 5000 {
		t.Errorf("%d answers, want one for each of 5000 requests", deaf.sent.Load())
	}
	cancel()
	<-ended
}

// halfClosed is a client that requests one watch and sends nothing more. It leaves after the first events.
type halfClosed struct {
	deafStream
	leave   context.CancelFunc
	created bool
	events  atomic.Int64
}

func (h *halfClosed) RecvMsg(m any) error {
	if h.created {
		return io.EOF
	}
	h.created = true
	m.(*pb.WatchRequest).RequestUnion = &pb.WatchRequest_CreateRequest{
		CreateRequest: &pb.WatchCreateRequest{Key: []byte("k"), StartRevision: 1},
	}
	return nil
}

// SendMsg is that of a transport that does not report that the client has gone.
func (h *halfClosed) SendMsg(m any) error {
	if h.events.Add(1) == 2 { // after the answer
		h.leave()
	}
	<-time.After(5 * time.Millisecond)
	return nil
}

// The departure of a client that sends no more requests is noticed, and the store is not read for it to the end.
func TestWatch_halfClosedClientLeaves(t *testing.T) {
	const puts = 100
	backend := newMachineBackend(t)
	services := rpc.New(rpc.Options{Member: backend})
	defer services.Close()
	for range puts {
		put := kv.PutOp{Key: []byte("k"), Value: make([]byte, 1<<20)}
		if _, err := backend.Propose(t.Context(), &kv.Command{Put: &put}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, leave := context.WithCancel(waitContext(t))
	defer leave()
	addr := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}
	client := &halfClosed{deafStream: deafStream{ctx: peer.NewContext(ctx, &peer.Peer{Addr: addr})}, leave: leave}
	_ = rpc.ServeWatch(services, grpc.ServerStream(client)) // it ends in any case
	if sent := client.events.Load(); sent > puts/2 {
		t.Errorf("%d answers were made for a client that had left after the second, of %d", sent, puts+1)
	}
}
