package rpc_test

import (
	"context"
	"maps"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/member/clients"
)

// heldClients proposes nothing while it holds.
type heldClients struct {
	*clients.Clients
	holds atomic.Bool
	asked chan struct{}
}

func (c *heldClients) ProposeAllFor(commands []clients.Proposed, refuse func(at int, why error)) {
	if c.holds.Load() {
		c.asked <- struct{}{}
		return
	}
	c.Clients.ProposeAllFor(commands, refuse)
}

// Ensure that writes of native clients are checked, and counted, as those of etcd's API, with users and without, also those
// that a client gives up.
func TestServices_Propose_steps(t *testing.T) {
	for _, users := range []bool{false, true} {
		m := startMember(t)
		publish(t, m)
		held := &heldClients{Clients: m.Clients(), asked: make(chan struct{}, 1)}
		s := serve(t, m, func(o *rpcOptions) { o.Clients = held })
		s.bare = bareConn(t, s)
		ctx, token := t.Context(), "" // logging in takes long with the race detector
		if users {
			enable(t, s)
			answer, err := pb.NewAuthClient(s.bare).Authenticate(waitContext(t), &pb.AuthenticateRequest{Name: "alice", Password: "alicepw"})
			if err != nil {
				t.Fatal(err)
			}
			token = answer.Token
			ctx = metadata.AppendToOutgoingContext(ctx, "token", token)
		}
		ctx, cancel := context.WithCancel(ctx)
		c := beginPropose(ctx, t, s, 0xc1)
		session := c.open()
		for i, row := range []struct {
			method  string
			request proto.Message
		}{
			{"Put", &pb.PutRequest{Key: []byte("a1")}},
			{"Put", &pb.PutRequest{}},
			{"Put", &pb.PutRequest{Key: []byte("a1"), Value: make([]byte, 1600<<10)}},
			{"Put", &pb.PutRequest{Key: []byte("a1"), Lease: 5}},
			{"Txn", &pb.TxnRequest{Success: list(putOp("a1"))}},
			{"Txn", &pb.TxnRequest{Success: list(putOp("a1"), putOp("a1"))}},
			{"DeleteRange", &pb.DeleteRangeRequest{Key: []byte("a1")}},
			{"DeleteRange", &pb.DeleteRangeRequest{}},
			{"Put", &pb.PutRequest{Key: []byte("s1")}}, // not permitted to alice
		} {
			want := status.Convert(invokeGRPC(waitContext(t), t, s, token, row.method, row.request))
			before := s.steps(t)
			got := c.propose(session, uint64(i+1), row.request, false)
			if codes.Code(got.Code) != want.Code() || got.Message != want.Message() {
				t.Errorf("%v, with users %t: got %v, want %v", row.request, users, got, want)
			}
			counted := s.steps(t).since(before)
			delete(counted, receivedBytes)
			delete(counted, sentBytes)
			failed := steps{}
			if want.Code() != codes.OK {
				failed[failedProposals] = 1
			}
			if !maps.Equal(counted, failed) {
				t.Errorf("%v, with users %t: the steps are %v, want %v", row.request, users, counted, failed)
			}
		}
		held.holds.Store(true)
		request, err := proto.Marshal(&pb.PutRequest{Key: []byte("a1")})
		if err != nil {
			t.Fatal(err)
		}
		before := s.steps(t)
		c.send(&quoratepb.ProposeRequest{Proposals: []*quoratepb.Proposal{
			{Session: session, Sequence: 100, Kind: quoratepb.Proposal_KIND_PUT, Request: request},
		}})
		<-held.asked
		s.awaitMetric(t, "etcd_server_proposals_pending 1")
		cancel()
		s.awaitMetric(t, "etcd_server_proposals_pending 0")
		if got := s.steps(t).since(before)[failedProposals]; got != 0 {
			t.Errorf("with users %t: %v proposals failed, though the client may ask again", users, got)
		}
	}
}
