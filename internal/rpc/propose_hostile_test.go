package rpc_test

import (
	"encoding/binary"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
)

// TestServices_Propose_otherClient refuses a client that knows another client's id and asks for that client's answers.
func TestServices_Propose_otherClient(t *testing.T) {
	s := serveNative(t, nil)
	victim := openPropose(t, s, 0xc1)
	session := victim.open()
	victim.propose(session, 1, &pb.PutRequest{Key: []byte("k"), Value: []byte("secret")}, false)
	if answer := victim.propose(session, 2, put("k"), false); answer.Verdict != quoratepb.Answer_VERDICT_APPLIED {
		t.Fatal(answer)
	}
	id := quoratepb.ClientID(clientKey(0xc1))
	for name, key := range map[string][]byte{
		"the id alone":  binary.BigEndian.AppendUint64(nil, id),
		"the id padded": binary.BigEndian.AppendUint64(make([]byte, quoratepb.ClientKeyBytes-8), id),
		"no key":        nil,
	} {
		stream, err := quoratepb.NewWriterClient(s.conn(t)).Propose(waitContext(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&quoratepb.ProposeRequest{Key: key, Proposals: []*quoratepb.Proposal{
			{Session: session, Sequence: 2, Kind: quoratepb.Proposal_KIND_PUT, Again: true}}}); err != nil {
			t.Fatal(err)
		}
		for {
			r, err := stream.Recv()
			if err != nil {
				if status.Code(err) != codes.InvalidArgument {
					t.Errorf("%s: %v", name, err)
				}
				break
			}
			if len(r.Answers) > 0 {
				if a := r.Answers[0]; a.Verdict == quoratepb.Answer_VERDICT_APPLIED || len(a.Response) > 0 {
					t.Errorf("%s: was told %v", name, a)
				}
				break
			}
		}
	}
}

// TestServices_Propose_retirements logs no entries for requests to retire sessions that are not open.
func TestServices_Propose_retirements(t *testing.T) {
	s := serveNative(t, nil)
	c := openPropose(t, s, 0xc1)
	session := c.open()
	before := s.backend.Status().Commit
	for i := range uint64(1000) {
		c.send(&quoratepb.ProposeRequest{Retire: []uint64{session + 4*i + 1, session + 4*i + 2, session + 4*i + 3}})
	}
	c.propose(session, 1, put("k"), false)
	if grown := s.backend.Status().Commit - before; grown > 2 {
		t.Errorf("the log grew by %d entries, want one for the put", grown)
	}
	c.send(&quoratepb.ProposeRequest{Retire: make([]uint64, 250_000)})
	for {
		if _, err := c.stream.Recv(); err != nil {
			if status.Code(err) != codes.InvalidArgument {
				t.Errorf("250,000 in one message: %v", err)
			}
			return
		}
	}
}

// TestServices_Propose_manyClients bounds the clients of one connection; other connections may have more.
func TestServices_Propose_manyClients(t *testing.T) {
	s := serveNative(t, nil)
	greedy := quoratepb.NewWriterClient(s.conn(t))
	served := 0
	for i := range uint64(200) {
		stream, err := greedy.Propose(waitContext(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&quoratepb.ProposeRequest{Key: clientKey(1000 + i)}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err == nil {
			served++
		} else if status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
	}
	if served == 0 || served > 64 {
		t.Errorf("%d clients were served on one connection, want 64 at most", served)
	}
	openPropose(t, s, 0xc1).open() // on a connection of its own
}

// written waits until a key has a version. It returns false if the version does not come.
func written(t *testing.T, client *clientv3.Client, key string, version int64) bool {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); {
		got, err := client.Get(waitContext(t), key)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Kvs) > 0 && got.Kvs[0].Version >= version {
			return true
		}
	}
	return false
}

// TestServices_Propose_unread holds a client back that asks for large answers and reads none: half of what may be unread waits
// for it, and the rest of its requests is taken when it reads. The answers are of the size that is read while they are applied:
// larger ones, and many at once, are read only when they are sent.
func TestServices_Propose_unread(t *testing.T) {
	s := serveNative(t, nil)
	c := openPropose(t, s, 0xc1)
	session, other := c.open(), s.client(t)
	large := &pb.PutRequest{Key: []byte("k"), Value: make([]byte, 3<<18)}
	c.propose(session, 1, large, false)
	request, err := proto.Marshal(&pb.TxnRequest{Success: []*pb.RequestOp{
		{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("x")}}},
		{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte("k")}}}}})
	if err != nil {
		t.Fatal(err)
	}
	const most = 100 // in a half of 64 MiB are fewer
	sent := uint64(1)
	for held := false; !held; { // one after the other: many in one batch are read only when they are sent
		sent++
		c.send(&quoratepb.ProposeRequest{Proposals: []*quoratepb.Proposal{
			{Session: session, Sequence: sent, Kind: quoratepb.Proposal_KIND_TXN, Request: request}}})
		if held = !written(t, other, "x", int64(sent-1)); !held && sent > most {
			t.Fatal("every answer waited in memory for a client that did not read")
		}
	}
	for got := 1; got < int(sent); { // the first one was answered
		for _, answer := range c.recv(func(r *quoratepb.ProposeResponse) bool { return len(r.Answers) > 0 }).Answers {
			if got++; answer.Verdict != quoratepb.Answer_VERDICT_APPLIED {
				t.Fatalf("got %.200v", answer)
			}
		}
	}
}
