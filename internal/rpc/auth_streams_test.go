package rpc_test

import (
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/api/quoratepb"
)

// Ensure that disabling and enabling ends all tokens, and the watches that they opened.
func TestAuth_watchOutlivesItsToken(t *testing.T) {
	s, root, alice, _ := secured(t)
	ctx := waitContext(t)
	events := alice.Watch(ctx, "a1", clientv3.WithCreatedNotify())
	<-events
	if _, err := root.Put(ctx, "a1", "1"); err != nil {
		t.Fatal(err)
	}
	<-events
	if _, err := root.AuthDisable(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := root.AuthEnable(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.as(t, "root").Put(ctx, "a1", "2"); err != nil {
		t.Fatal(err)
	}
	if r := <-events; len(r.Events) > 0 {
		t.Error("the watch of a token that is void goes on")
	}
}

// Ensure that a deleted user cannot continue to watch the membership.
func TestAuth_membershipWatchOutlivesItsUser(t *testing.T) {
	s, root, _, _ := secured(t)
	ctx := waitContext(t)
	in, err := pb.NewAuthClient(s.conn(t)).Authenticate(ctx, &pb.AuthenticateRequest{Name: "alice", Password: "alicepw"})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := quoratepb.NewMembershipClient(s.conn(t)).Watch(
		metadata.AppendToOutgoingContext(ctx, "token", in.Token), &quoratepb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if _, err := root.UserDelete(ctx, "alice"); err != nil {
		t.Fatal(err)
	}
	heard := make(chan error, 8)
	go func() {
		for {
			_, err := stream.Recv()
			heard <- err
			if err != nil {
				return
			}
		}
	}()
	if _, err := root.MemberUpdate(ctx, uint64(testMember), []string{testPeerURL}); err != nil {
		t.Logf("a change of the membership: %v", err) // some event, whatever its outcome
	}
	select {
	case err := <-heard:
		if err == nil {
			t.Error("a deleted user hears of the membership")
		}
	case <-time.After(2 * time.Second):
		t.Error("the stream of a deleted user stays open")
	}
}

// Ensure that a change of users and roles does not end watches of one stream which two roles permit only together, however many
// they are: each is a request of its own (auth.MaxLookups).
func TestAuth_manyWatchesOfTwoRoles(t *testing.T) {
	const pieces, watches = 100, 120 // each watch takes two lookups for each piece
	s, root, _, _ := secured(t)
	ctx := waitContext(t)
	bound := func(i int) string { return fmt.Sprintf("p%03d", i) }
	for _, role := range []string{"even", "odd"} {
		if _, err := root.RoleAdd(ctx, role); err != nil {
			t.Fatal(err)
		}
	}
	for i := range pieces {
		role := []string{"even", "odd"}[i%2]
		if _, err := root.RoleGrantPermission(ctx, role, bound(i), bound(i+1), clientv3.PermissionType(clientv3.PermRead)); err != nil {
			t.Fatal(err)
		}
	}
	for _, role := range []string{"even", "odd"} {
		if _, err := root.UserGrantRole(ctx, "alice", role); err != nil {
			t.Fatal(err)
		}
	}
	in, err := pb.NewAuthClient(s.conn(t)).Authenticate(ctx, &pb.AuthenticateRequest{Name: "alice", Password: "alicepw"})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := pb.NewWatchClient(s.conn(t)).Watch(metadata.AppendToOutgoingContext(ctx, "token", in.Token))
	if err != nil {
		t.Fatal(err)
	}
	create := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte(bound(0)), RangeEnd: []byte(bound(pieces)),
	}}}
	for range watches {
		if err := stream.Send(create); err != nil {
			t.Fatal(err)
		}
		if r, err := stream.Recv(); err != nil || !r.Created || r.Canceled {
			t.Fatalf("got %v, %v", r, err)
		}
	}
	if _, err := root.UserAdd(ctx, "somebody", "pw"); err != nil { // another state of users
		t.Fatal(err)
	}
	if _, err := root.Put(ctx, bound(7), "v"); err != nil {
		t.Fatal(err)
	}
	for told := range watches {
		if r, err := stream.Recv(); err != nil || r.Canceled || len(r.Events) != 1 {
			t.Fatalf("after %d watches: got %v, %v", told, r, err)
		}
	}
}
