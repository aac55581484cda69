package rpc_test

import (
	"context"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// Ensure that tokens end when authentication is disabled, and when their user is deleted; and that others are refused.
func TestAuth_tokensEnd(t *testing.T) {
	s, root, _, _ := secured(t)
	ctx := waitContext(t)
	conn, err := grpc.NewClient(s.addr, grpc.WithTransportCredentials(insecure.NewCredentials())) // does not retry
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	auth, kv := pb.NewAuthClient(conn), pb.NewKVClient(conn)
	login := func(user string) context.Context {
		in, err := auth.Authenticate(ctx, &pb.AuthenticateRequest{Name: user, Password: user + "pw"})
		if err != nil {
			t.Fatal(err)
		}
		return metadata.AppendToOutgoingContext(ctx, "token", in.Token)
	}
	get := func(ctx context.Context) error {
		_, err := kv.Range(ctx, &pb.RangeRequest{Key: []byte("a1")})
		return err
	}
	alice := login("alice")
	if err := get(alice); err != nil {
		t.Fatal(err)
	}
	if _, err := root.AuthDisable(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := root.AuthEnable(ctx); err != nil {
		t.Fatal(err)
	}
	if err := get(alice); err == nil {
		t.Error("a token is good after disable and enable")
	}
	alice = login("alice")
	root = s.as(t, "root")
	if _, err := root.UserDelete(ctx, "alice"); err != nil {
		t.Fatal(err)
	}
	if err := get(alice); err == nil {
		t.Error("a token is good after the user was deleted")
	}
	if _, err := root.UserAdd(ctx, "alice", "alicepw"); err != nil {
		t.Fatal(err)
	}
	if err := get(alice); err == nil {
		t.Error("a token is good after the user was deleted and added")
	}
	for _, md := range [][]string{{"token", ""}, {"authorization", ""}, {"authorization", "Bearer "}, {"token", "x"},
		{"token", "", "token", "x"}, {"token", "AAAA.BBBB.CCCC"}} {
		err := get(metadata.AppendToOutgoingContext(ctx, md...))
		if err == nil {
			t.Errorf("%q reads", md)
		}
	}
}

// Ensure that watches get only permitted keys: the empty key, from a key on, fragments, ids that are created again, before and
// after a revocation.
func TestAuth_rawWatches(t *testing.T) {
	s, root, _, _ := secured(t)
	ctx := waitContext(t)
	conn := s.conn(t)
	in, err := pb.NewAuthClient(conn).Authenticate(ctx, &pb.AuthenticateRequest{Name: "alice", Password: "alicepw"})
	if err != nil {
		t.Fatal(err)
	}
	var stream grpc.BidiStreamingClient[pb.WatchRequest, pb.WatchResponse]
	stream, err = pb.NewWatchClient(conn).Watch(metadata.AppendToOutgoingContext(ctx, "token", in.Token))
	if err != nil {
		t.Fatal(err)
	}
	create := func(r *pb.WatchCreateRequest) *pb.WatchResponse {
		t.Helper()
		if err := stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}}); err != nil {
			t.Fatal(err)
		}
		got, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, r := range []*pb.WatchCreateRequest{
		{}, {RangeEnd: []byte{0}}, {Key: []byte("a"), RangeEnd: []byte{0}}, {Key: []byte{0}, RangeEnd: []byte{0}},
		{Key: []byte("s1"), StartRevision: 1}, {Key: []byte("s1"), StartRevision: 1, Fragment: true, PrevKv: true},
		{Key: []byte("a"), RangeEnd: []byte("z"), WatchId: 9}, {RangeEnd: []byte("t"), StartRevision: 1},
		{Key: []byte("s1"), StartRevision: -5}, {Key: []byte("s"), RangeEnd: []byte("\xff"), StartRevision: 1},
	} {
		if got := create(r); !got.Canceled || len(got.Events) > 0 {
			t.Errorf("%v: %v", r, got)
		}
	}
	if got := create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("c"), WatchId: 5}); got.Canceled {
		t.Fatal(got)
	}
	if _, err := root.RoleRevokePermission(ctx, "reader", "b", "c"); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Put(ctx, "b1", "after"); err != nil {
		t.Fatal(err)
	}
	if got, err := stream.Recv(); err != nil || !got.Canceled || len(got.Events) > 0 {
		t.Errorf("after the revocation: %v, %v", got, err)
	}
	if got := create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("c"), WatchId: 5}); !got.Canceled {
		t.Errorf("again: %v", got)
	}
	if got := create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("b"), WatchId: 5}); got.Canceled {
		t.Errorf("what is left: %v", got)
	}
}
