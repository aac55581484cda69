package rpc_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member"
)

// A repeated add returns the member of the first one while that was never started, and only then.
func TestCluster_MemberAdd_again(t *testing.T) {
	s := serveMember(t, nil)
	c, ctx := s.client(t), waitContext(t)
	urls := []string{"http://127.0.0.1:23501", "http://127.0.0.1:23500"}
	first, err := c.MemberAddAsLearner(ctx, urls)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.MemberAddAsLearner(ctx, []string{urls[1], urls[0], urls[1]})
	if err != nil || again.Member.ID != first.Member.ID || len(again.Members) != 2 || !again.Member.IsLearner {
		t.Errorf("the same add again: got %v, %v; want the member of the first", again, err)
	}
	for _, row := range []struct {
		name    string
		urls    []string
		learner bool
	}{
		{"one of its URLs", urls[:1], true},
		{"one URL more", append([]string{"http://127.0.0.1:23502"}, urls...), true},
		{"the same URLs as a voter", urls, false},
		{"the URL of a member that has started", []string{testPeerURL}, false},
	} {
		_, err := pb.NewClusterClient(s.conn(t)).MemberAdd(ctx,
			&pb.MemberAddRequest{PeerURLs: row.urls, IsLearner: row.learner})
		if rpctypes.ErrorDesc(err) != rpctypes.ErrorDesc(rpctypes.ErrGRPCPeerURLExist) {
			t.Errorf("%s: got %v, want %v", row.name, err, rpctypes.ErrGRPCPeerURLExist)
		}
	}
	if _, err := c.MemberRemove(ctx, first.Member.ID); err != nil {
		t.Fatal(err)
	}
	fresh, err := c.MemberAddAsLearner(ctx, urls)
	if err != nil || fresh.Member.ID == first.Member.ID {
		t.Errorf("the same add after a removal: got %v, %v; want another member", fresh, err)
	}
}

func TestCluster_MemberUpdate_takenURL(t *testing.T) {
	s := serveMember(t, nil)
	c, ctx := s.client(t), waitContext(t)
	added, err := c.MemberAddAsLearner(ctx, []string{"http://127.0.0.1:23500"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.MemberUpdate(ctx, added.Member.ID, []string{testPeerURL}); !errors.Is(err, rpctypes.ErrPeerURLExist) {
		t.Errorf("a URL of another member: got %v, want %v", err, rpctypes.ErrPeerURLExist)
	}
	if _, err := c.MemberUpdate(ctx, added.Member.ID, added.Member.PeerURLs); err != nil {
		t.Errorf("its own URLs: got %v, want no error, as with etcd", err)
	}
	if _, err := c.MemberUpdate(ctx, 1, []string{"http://127.0.0.1:23509"}); !errors.Is(err, rpctypes.ErrMemberNotFound) {
		t.Errorf("no member: got %v, want %v", err, rpctypes.ErrMemberNotFound)
	}
}

// leadingBackend notes the order of changes of the leader and of the configuration.
type leadingBackend struct {
	*machineBackend
	status   raft.Status
	transfer error
	done     []string
}

func (b *leadingBackend) Status() raft.Status { return b.status }

func (b *leadingBackend) TransferLeadership(_ context.Context, to consensus.MemberID) error {
	b.done = append(b.done, "transfer to "+to.String())
	return b.transfer
}

func (b *leadingBackend) ChangeConfig(_ context.Context, r consensus.ChangeRequest) (consensus.Config, error) {
	b.done = append(b.done, r.Steps[0].Kind.String()+" "+r.Steps[0].Member.ID.String())
	return consensus.Config{
		Voters: []consensus.MemberID{2}, Outgoing: []consensus.MemberID{2, testMember},
		Members: []consensus.Member{{ID: 2}, {ID: testMember}},
	}, nil
}

func TestCluster_MemberRemove_handsOverFirst(t *testing.T) {
	voters := []consensus.MemberID{2, 3, 4, testMember}
	progress := []raft.PeerProgress{
		{ID: 2, Match: 80, RecentActive: true, CaughtUp: true},
		{ID: 3, Match: 90, RecentActive: true, CaughtUp: true},
		{ID: 4, Match: 95, CaughtUp: true},
		{ID: 5, Match: 99, RecentActive: true, CaughtUp: true, Learner: true},
	}
	for _, row := range []struct {
		name     string
		leader   consensus.MemberID
		remove   consensus.MemberID
		progress []raft.PeerProgress
		transfer error
		want     []string
	}{
		{"a leader that goes", testMember, testMember, progress, nil, []string{"transfer to 3", "remove a1"}},
		{"a leader that goes and cannot hand over", testMember, testMember, progress, member.ErrTransferTimeout,
			[]string{"transfer to 3", "remove a1"}},
		{"a leader whom nobody can follow", testMember, testMember, progress[2:], nil, []string{"remove a1"}},
		{"a follower that goes", 2, testMember, progress, nil, []string{"remove a1"}},
		{"a leader that removes another", testMember, 2, progress, nil, []string{"remove 2"}},
	} {
		b := &leadingBackend{machineBackend: newMachineBackend(t), transfer: row.transfer}
		b.lead(row.leader)
		b.status = raft.Status{Config: consensus.Config{Voters: voters}, Progress: row.progress}
		s := serve(t, b, func(o *rpcOptions) { o.StrictReconfig = false })
		r, err := s.client(t).MemberRemove(waitContext(t), uint64(row.remove))
		if err != nil || !slices.Equal(b.done, row.want) {
			t.Errorf("%s: got %v, %v; want %v", row.name, b.done, err, row.want)
			continue
		}
		if len(r.Members) != 1 || r.Members[0].ID != 2 {
			t.Errorf("%s: got %v, want only who stays once the joint phase ends", row.name, r.Members)
		}
	}
}
