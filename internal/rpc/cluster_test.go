package rpc_test

import (
	"errors"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/status"
)

func TestCluster_membersOfOne(t *testing.T) {
	s := serveMember(t, nil)
	c, ctx := s.client(t), waitContext(t)
	listed, err := c.MemberList(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(listed.Members) != 1 || listed.Members[0].Name != "one" || listed.Members[0].ID != uint64(testMember) ||
		!slices.Equal(listed.Members[0].PeerURLs, []string{testPeerURL}) || len(listed.Members[0].ClientURLs) != 1 {
		t.Errorf("list: got %v, want the published member", listed.Members)
	}
	if h := listed.Header; h.Revision != 0 || h.RaftTerm == 0 || h.ClusterId != uint64(testCluster) {
		t.Errorf("header: got %v, want no revision", h)
	}
	added, err := c.MemberAddAsLearner(ctx, []string{"http://127.0.0.1:4", "http://127.0.0.1:3"})
	if err != nil {
		t.Fatal(err)
	}
	learner := added.Member
	if !learner.IsLearner || learner.Name != "" || learner.PeerURLs[0] != "http://127.0.0.1:3" || len(added.Members) != 2 {
		t.Errorf("add: got %v, want a learner without name, its URLs sorted, and two members", added)
	}
	if _, err := c.MemberAddAsLearner(ctx, []string{"http://127.0.0.1:4"}); !errors.Is(err, rpctypes.ErrPeerURLExist) {
		t.Errorf("add of a known URL: got %v, want %v", err, rpctypes.ErrPeerURLExist)
	}
	if _, err := c.MemberPromote(ctx, learner.ID); !errors.Is(err, rpctypes.ErrMemberLearnerNotReady) {
		t.Errorf("promote a learner that never answered: got %v, want %v", err, rpctypes.ErrMemberLearnerNotReady)
	}
	if _, err := c.MemberPromote(ctx, 1); !errors.Is(err, rpctypes.ErrMemberNotFound) {
		t.Errorf("promote no member: got %v, want %v", err, rpctypes.ErrMemberNotFound)
	}
	if _, err := c.MemberPromote(ctx, uint64(testMember)); !errors.Is(err, rpctypes.ErrMemberNotLearner) {
		t.Errorf("promote a voter: got %v, want %v", err, rpctypes.ErrMemberNotLearner)
	}
	updated, err := c.MemberUpdate(ctx, learner.ID, []string{"http://127.0.0.1:5"})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, m := range updated.Members {
		found = found || m.ID == learner.ID && m.IsLearner && slices.Equal(m.PeerURLs, []string{"http://127.0.0.1:5"})
	}
	if !found {
		t.Errorf("update: got %v, want the learner with its new URL", updated.Members)
	}
	removed, err := c.MemberRemove(ctx, learner.ID)
	if err != nil || len(removed.Members) != 1 {
		t.Errorf("remove: got %v, %v; want one member left", removed, err)
	}
	if _, err := c.MemberRemove(ctx, learner.ID); !errors.Is(err, rpctypes.ErrMemberNotFound) {
		t.Errorf("second remove: got %v, want %v", err, rpctypes.ErrMemberNotFound)
	}
}

func TestCluster_changes_areChecked(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	client, ctx := pb.NewClusterClient(s.conn(t)), waitContext(t)
	self := uint64(testMember)
	for _, row := range []struct {
		name string
		call func() error
		want error
	}{
		{"add without URLs", func() error {
			_, err := client.MemberAdd(ctx, &pb.MemberAddRequest{})
			return err
		}, rpctypes.ErrGRPCMemberBadURLs},
		{"add with a path", func() error {
			_, err := client.MemberAdd(ctx, &pb.MemberAddRequest{PeerURLs: []string{"http://a:1/b"}})
			return err
		}, rpctypes.ErrGRPCMemberBadURLs},
		{"add without port", func() error {
			_, err := client.MemberAdd(ctx, &pb.MemberAddRequest{PeerURLs: []string{"http://a"}})
			return err
		}, rpctypes.ErrGRPCMemberBadURLs},
		{"update with a foreign scheme", func() error {
			_, err := client.MemberUpdate(ctx, &pb.MemberUpdateRequest{ID: self, PeerURLs: []string{"ftp://a:1"}})
			return err
		}, rpctypes.ErrGRPCMemberBadURLs},
		{"add a voter while nobody was published", func() error {
			_, err := client.MemberAdd(ctx, &pb.MemberAddRequest{PeerURLs: []string{"http://a:1"}})
			return err
		}, status.Error(2, "etcdserver: re-configuration failed due to not enough started members")},
	} {
		got := row.call()
		if status.Code(got) != status.Code(row.want) || rpctypes.ErrorDesc(got) != rpctypes.ErrorDesc(row.want) {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
}
