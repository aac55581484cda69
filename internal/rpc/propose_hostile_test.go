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

// TestServices_Propose_unread ends the stream of a client that asks for large answers and reads none. The answers are of the
// size that is read while they are applied: larger ones, and many at once, are read only when they are sent.
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
	for sequence := uint64(2); sequence < 160; sequence++ {
		err := c.stream.Send(&quoratepb.ProposeRequest{Proposals: []*quoratepb.Proposal{
			{Session: session, Sequence: sequence, Kind: quoratepb.Proposal_KIND_TXN, Request: request}}})
		if err != nil || !written(t, other, "x", int64(sequence-1)) { // not all in one batch, nor when they are read
			break
		}
	}
	for got := 0; ; {
		r, err := c.stream.Recv()
		if err != nil {
			if status.Code(err) != codes.ResourceExhausted {
				t.Errorf("got %v after %d answers, want the stream to end for what was not read", err, got)
			}
			return
		}
		if got += len(r.Answers); got >= 158 {
			t.Fatal("every answer waited in memory for a client that did not read")
		}
	}
}
