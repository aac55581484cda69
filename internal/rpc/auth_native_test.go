package rpc_test

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
)

// openProposeAs is openPropose with a user's token.
func openProposeAs(t testing.TB, s *server, client uint64, user string) *proposeClient {
	t.Helper()
	ctx := waitContext(t)
	in, err := pb.NewAuthClient(s.conn(t)).Authenticate(ctx, &pb.AuthenticateRequest{Name: user, Password: user + "pw"})
	if err != nil {
		t.Fatal(err)
	}
	return beginPropose(metadata.AppendToOutgoingContext(t.Context(), "token", in.Token), t, s, client)
}

func aPut(key string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte("v")}}}
}

func aRange(key, end string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(key), RangeEnd: []byte(end)}}}
}

// Ensure that a repeated proposal whose request differs, and is refused before its permission is checked, does not get the
// answer to the first request.
func TestAuth_againReadsNothingElse(t *testing.T) {
	s := serveNative(t, nil)
	enable(t, s)
	c := openProposeAs(t, s, 0xa1, "alice")
	session := c.open()
	first := c.propose(session, 1, &pb.TxnRequest{Success: []*pb.RequestOp{aPut("a1"), aRange("a1", "")}}, false)
	if first.Verdict != quoratepb.Answer_VERDICT_APPLIED || first.Code != 0 {
		t.Fatalf("first: %v", first)
	}
	denied := c.propose(session, 1, &pb.TxnRequest{Success: []*pb.RequestOp{aPut("a1"), aRange("s", "t")}}, true)
	if denied.Verdict != quoratepb.Answer_VERDICT_REFUSED || len(denied.Response) > 0 {
		t.Errorf("a valid request for a secret: %v", denied)
	}
	second := c.propose(session, 1, &pb.TxnRequest{
		Success: []*pb.RequestOp{aPut("a1"), aRange("\x00", "\x00")},
		Failure: []*pb.RequestOp{aPut("a2"), aPut("a2")},
	}, true)
	got := new(pb.TxnResponse)
	if err := proto.Unmarshal(second.Response, got); err != nil {
		t.Fatal(err)
	}
	for _, r := range got.Responses {
		for _, one := range r.GetResponseRange().GetKvs() {
			if string(one.Key) == "s1" {
				t.Errorf("alice reads %s=%s, which she may not", one.Key, one.Value)
			}
		}
	}
}
