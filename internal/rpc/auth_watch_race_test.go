package rpc_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/auth/login"
	"github.com/quorate/quorate/internal/base/env"
)

// slowLogin delays the next authentication of alice.
type slowLogin struct {
	inner *login.Login
	hold  atomic.Bool
	held  chan struct{}
	going chan struct{}
}

func (l *slowLogin) Authenticate(state *auth.State, token string) (auth.Credentials, error) {
	by, err := l.inner.Authenticate(state, token)
	if by.User == "alice" && l.hold.CompareAndSwap(true, false) {
		close(l.held)
		<-l.going
	}
	return by, err
}

func (l *slowLogin) Quick() bool { return l.inner.Quick() }

func (l *slowLogin) Again(state *auth.State, token string) func() bool {
	return l.inner.Again(state, token)
}

func (l *slowLogin) Hash(ctx context.Context, password string) ([]byte, error) {
	return l.inner.Hash(ctx, password)
}

func (l *slowLogin) Login(ctx context.Context, state *auth.State, user, password string) (string, error) {
	return l.inner.Login(ctx, state, user, password)
}

// Ensure that a watch ends whose permission is revoked between its check and its creation, after the review of the others.
func TestAuth_watchCreatedAcrossRevocation(t *testing.T) {
	real, err := login.New(login.Options{Clock: env.WallClock{}, BcryptCost: 4})
	if err != nil {
		t.Fatal(err)
	}
	slow := &slowLogin{inner: real, held: make(chan struct{}), going: make(chan struct{})}
	s := serveMember(t, func(o *rpcOptions) { o.Login = slow })
	enable(t, s)
	root, ctx := s.as(t, "root"), waitContext(t)
	in, err := pb.NewAuthClient(s.conn(t)).Authenticate(ctx, &pb.AuthenticateRequest{Name: "alice", Password: "alicepw"})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := pb.NewWatchClient(s.conn(t)).Watch(metadata.AppendToOutgoingContext(ctx, "token", in.Token))
	if err != nil {
		t.Fatal(err)
	}
	create := func(id int64, key, end string) {
		_ = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
			CreateRequest: &pb.WatchCreateRequest{WatchId: id, Key: []byte(key), RangeEnd: []byte(end)}}})
	}
	put := func(key string) {
		if _, err := root.Put(ctx, key, "v"); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan *pb.WatchResponse, 64)
	go func() {
		for {
			r, err := stream.Recv()
			if err != nil {
				return
			}
			got <- r
		}
	}()
	create(1, "a1", "")
	<-got
	put("a1")
	<-got
	slow.hold.Store(true)
	create(2, "b", "c")
	<-slow.held
	if _, err := root.RoleRevokePermission(ctx, "reader", "b", "c"); err != nil {
		t.Fatal(err)
	}
	put("a1") // the sender reviews
	<-got
	close(slow.going)
	<-got
	put("b1")
	_ = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
	wait, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for {
		select {
		case r := <-got:
			if len(r.Events) > 0 {
				t.Error("events of what may not be read")
			}
			if r.Canceled {
				return
			}
		case <-wait.Done():
			t.Error("the watch neither ends nor sends, and the progress that was asked for does not come")
			return
		}
	}
}

func (l *slowLogin) Stats() login.Stats { return l.inner.Stats() }
