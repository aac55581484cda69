package rpc_test

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
)

// TestServices_Propose_oneMessage answers each write of a message with more writes than may wait at once, with a revision of
// its own in the message's order, and refuses one of them alone.
func TestServices_Propose_oneMessage(t *testing.T) {
	s := serveNative(t, nil)
	c := openPropose(t, s, 0xc1)
	session := c.open()
	const many, wrong = 6000, 4500
	message := &quoratepb.ProposeRequest{}
	for sequence := uint64(1); sequence <= many; sequence++ {
		request := &pb.PutRequest{Key: fmt.Appendf(nil, "k/%d", sequence)}
		if sequence == wrong {
			request.Lease = 99
		}
		encoded, err := proto.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		message.Proposals = append(message.Proposals, &quoratepb.Proposal{
			Session: session, Sequence: sequence, Kind: quoratepb.Proposal_KIND_PUT, Request: encoded})
	}
	c.send(message)
	revisions := map[uint64]int64{}
	for len(revisions) < many {
		for _, a := range c.recv(func(r *quoratepb.ProposeResponse) bool { return len(r.Answers) > 0 }).Answers {
			if _, twice := revisions[a.Sequence]; twice || a.Verdict != quoratepb.Answer_VERDICT_APPLIED {
				t.Fatalf("%d: %v, answered before: %v", a.Sequence, a, twice)
			}
			var response pb.PutResponse
			if err := proto.Unmarshal(a.Response, &response); err != nil || (a.Code != 0) != (a.Sequence == wrong) {
				t.Fatalf("%d: %v, %v", a.Sequence, a, err)
			}
			revisions[a.Sequence] = response.Header.GetRevision()
		}
	}
	before := revisions[1] - 1
	for sequence := uint64(1); sequence <= many; sequence++ {
		if sequence == wrong {
			continue
		}
		if before++; revisions[sequence] != before {
			t.Fatalf("write %d has revision %d, want %d", sequence, revisions[sequence], before)
		}
	}
	// Each of them is known.
	for _, sequence := range []uint64{1, 4097, many} {
		if a := c.propose(session, sequence, &pb.PutRequest{Key: []byte("other")}, true); a.Verdict != quoratepb.Answer_VERDICT_APPLIED {
			t.Errorf("%d again: %v", sequence, a)
		}
	}
}
