package inproc_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/rpc/incoming"
	"github.com/quorate/quorate/internal/rpc/inproc"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// service shows what it was called with.
type service struct {
	pb.UnimplementedLeaseServer
	from, secret string
	ended        chan error
	sent         func() // a message of a stream; may be nil
}

func (s *service) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	if from, ok := peer.FromContext(ctx); ok {
		s.from = from.Addr.String()
	}
	s.secret, _ = incoming.First(ctx, "secret")
	r.ID++
	return &pb.LeaseGrantResponse{ID: r.ID}, grpc.SetHeader(ctx, metadata.Pairs("h", "v"))
}

func (s *service) LeaseKeepAlive(stream grpc.BidiStreamingServer[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse]) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			s.ended <- err
			return err
		}
		if err := stream.Send(&pb.LeaseKeepAliveResponse{ID: r.ID}); err != nil {
			return err
		}
		if s.sent != nil {
			s.sent()
		}
	}
}

func newChannel(t *testing.T) (pb.LeaseClient, *service) {
	t.Helper()
	s := &service{ended: make(chan error, 1)}
	c := inproc.New(inproc.Options{
		Unary: func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			return handle(ctx, r)
		},
		Stream: func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			return handle(srv, ss)
		},
		Codec:           wire.Codec{Received: new(atomic.Uint64), Sent: new(atomic.Uint64)},
		MaxRequestBytes: 8, MaxReplyBytes: 8,
	})
	pb.RegisterLeaseServer(c, s)
	return pb.NewLeaseClient(c), s
}

// Ensure that a service sees the caller's address and what it sends on, not what the caller itself was sent, and that messages
// are copied and bounded.
func TestChannel_Invoke(t *testing.T) {
	client, s := newChannel(t)
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 1}})
	ctx = incoming.NewContext(ctx, metadata.Pairs("secret", "received"))
	ctx = metadata.NewOutgoingContext(ctx, metadata.Pairs("secret", "sent"))
	request, header := &pb.LeaseGrantRequest{ID: 1}, metadata.MD{}
	granted, err := client.LeaseGrant(ctx, request, grpc.Header(&header))
	if err != nil || granted.ID != 2 || request.ID != 1 {
		t.Errorf("got %v, %v; the request is %v", granted, err, request)
	}
	if s.from != "10.0.0.7:1" || s.secret != "sent" || header.Get("h")[0] != "v" {
		t.Errorf("called from %s with %s, answered %v", s.from, s.secret, header)
	}
	_, err = client.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: -1})
	if want := "grpc: received message larger than max (11 vs. 8)"; status.Code(err) != codes.ResourceExhausted ||
		status.Convert(err).Message() != want {
		t.Errorf("a large request: got %v, want %s", err, want)
	}
	if _, err := client.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: 1<<62 - 1}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a large answer: got %v", err)
	}
	if _, err := client.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a method that is not served: got %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := client.LeaseGrant(ended, request); status.Code(err) != codes.Canceled {
		t.Errorf("a caller that has gone: got %v", err)
	}
}

// Ensure how streams pass messages, and that each end learns that the other has gone.
func TestChannel_NewStream(t *testing.T) {
	client, s := newChannel(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	stream, err := client.LeaseKeepAlive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: 5}); err != nil {
		t.Fatal(err)
	}
	if r, err := stream.Recv(); err != nil || r.ID != 5 {
		t.Errorf("got %v, %v", r, err)
	}
	cancel(status.Error(codes.InvalidArgument, "why"))
	if _, err := stream.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("the caller got %v, want the cause", err)
	}
	if err := <-s.ended; status.Code(err) != codes.Canceled {
		t.Errorf("the service got %v, want Canceled", err)
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{}); err == nil {
		t.Error("a stream that has ended takes messages")
	}

	if stream, err = client.LeaseKeepAlive(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stream.CloseSend(), stream.CloseSend()); err != nil {
		t.Error(err)
	}
	if _, err := stream.Recv(); err == nil || (<-s.ended).Error() != "EOF" {
		t.Errorf("after the last request: got %v", err)
	}
}

// Ensure that a service goes on only once its caller has taken memory for what it is sent, or will take none: until then the
// service counts it.
func TestChannel_NewStream_room(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, refused := range []error{nil, status.Error(codes.ResourceExhausted, "no room")} {
			client, s := newChannel(t)
			room, sent := make(chan error), 0
			s.sent = func() { sent++ }
			caller := &inproc.Caller{Take: func(context.Context, int) error { return <-room }}
			ctx, cancel := context.WithCancel(inproc.With(t.Context(), caller))
			stream, err := client.LeaseKeepAlive(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: 5}); err != nil {
				t.Fatal(err)
			}
			received := make(chan error)
			go func() {
				_, err := stream.Recv()
				received <- err
			}()
			synctest.Wait()
			if sent != 0 {
				t.Error("the service goes on before its caller has room")
			}
			room <- refused
			if err := <-received; !errors.Is(err, refused) {
				t.Errorf("got %v, want %v", err, refused)
			}
			synctest.Wait()
			if sent != 1 {
				t.Errorf("with room %v the service has sent %d messages", refused, sent)
			}
			cancel()
			<-s.ended
		}
	})
}
