package rpc_test

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/clients"
)

// proposeClient is one stream of a native client, by hand.
type proposeClient struct {
	t      testing.TB
	stream quoratepb.Writer_ProposeClient
	idle   *time.Timer // ends the stream when the test sends or waits for one message for longer than testWait
	first  *quoratepb.MemberStatus
	above  uint64
}

// clientKey is the key of a client that a test numbers.
func clientKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, quoratepb.ClientKeyBytes-8), number)
}

func openPropose(t testing.TB, s *server, client uint64) *proposeClient {
	t.Helper()
	return beginPropose(t.Context(), t, s, client)
}

// beginPropose opens a stream that lives as long as the test does, if no message takes longer than testWait.
func beginPropose(ctx context.Context, t testing.TB, s *server, client uint64) *proposeClient {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	stream, err := quoratepb.NewWriterClient(s.conn(t)).Propose(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c := &proposeClient{t: t, stream: stream, idle: time.AfterFunc(testWait, cancel)}
	t.Cleanup(cancel)
	c.send(&quoratepb.ProposeRequest{Key: clientKey(client)})
	c.first = c.recv(func(r *quoratepb.ProposeResponse) bool { return r.Status != nil }).Status
	return c
}

func (c *proposeClient) send(r *quoratepb.ProposeRequest) {
	c.t.Helper()
	c.idle.Reset(testWait)
	defer c.idle.Stop()
	if err := c.stream.Send(r); err != nil {
		c.t.Fatal(err)
	}
}

// recv returns the first message that has what the test waits for.
func (c *proposeClient) recv(has func(*quoratepb.ProposeResponse) bool) *quoratepb.ProposeResponse {
	c.t.Helper()
	defer c.idle.Stop()
	for {
		c.idle.Reset(testWait)
		r, err := c.stream.Recv()
		if err != nil {
			c.t.Fatal(err)
		}
		if has(r) {
			return r
		}
	}
}

func (c *proposeClient) open(keep ...uint64) uint64 {
	c.t.Helper()
	c.send(&quoratepb.ProposeRequest{Open: &quoratepb.OpenSession{Keep: keep, Above: c.above}})
	opened := c.recv(func(r *quoratepb.ProposeResponse) bool { return r.Opened != nil }).Opened
	if opened.Session == 0 {
		c.t.Fatalf("no session: %v", opened)
	}
	c.above = opened.Session
	return opened.Session
}

// propose sends one proposal and returns its answer.
func (c *proposeClient) propose(session, sequence uint64, r proto.Message, again bool) *quoratepb.Answer {
	c.t.Helper()
	request, err := proto.Marshal(r)
	if err != nil {
		c.t.Fatal(err)
	}
	kind := quoratepb.Proposal_KIND_PUT
	switch r.(type) {
	case *pb.DeleteRangeRequest:
		kind = quoratepb.Proposal_KIND_DELETE_RANGE
	case *pb.TxnRequest:
		kind = quoratepb.Proposal_KIND_TXN
	}
	c.send(&quoratepb.ProposeRequest{Proposals: []*quoratepb.Proposal{{
		Session: session, Sequence: sequence, Kind: kind, Request: request, Again: again,
	}}})
	return c.recv(func(r *quoratepb.ProposeResponse) bool { return len(r.Answers) > 0 }).Answers[0]
}

func serveNative(t testing.TB, change func(*rpcOptions)) *server {
	return serveNativeBy(t, startMember(t), change)
}

// serveNativeBy is serveNative with this member.
func serveNativeBy(t testing.TB, m *member.Member, change func(*rpcOptions)) *server {
	publish(t, m)
	return serve(t, m, func(o *rpcOptions) {
		o.Clients = m.Clients()
		if change != nil {
			change(o)
		}
	})
}

func put(key string) *pb.PutRequest {
	return &pb.PutRequest{Key: []byte(key), Value: []byte("v"), PrevKv: true}
}

func TestServices_Propose_once(t *testing.T) {
	s := serveNative(t, nil)
	c := openPropose(t, s, 0xc1)
	if c.first.Leader == 0 || c.first.Member != uint64(testMember) || c.first.SessionLength != clients.ClientSessionLength {
		t.Errorf("status: got %v", c.first)
	}
	if off := time.Since(time.Unix(0, int64(c.first.Clock))).Abs(); off > time.Minute {
		t.Errorf("the member's clock is %v off", off)
	}
	session := c.open()
	answer := c.propose(session, 1, put("k"), false)
	first := new(pb.PutResponse)
	if err := proto.Unmarshal(answer.Response, first); err != nil || answer.Verdict != quoratepb.Answer_VERDICT_APPLIED ||
		first.Header.Revision != 2 || first.PrevKv != nil {
		t.Fatalf("first: got %v, %v, %v", answer, first, err)
	}
	c.propose(session, 2, put("k"), false)
	other := openPropose(t, s, 0xc1) // the same client over another stream
	for _, again := range []bool{false, true} {
		answer = other.propose(session, 1, put("k"), again)
		second := new(pb.PutResponse)
		if err := proto.Unmarshal(answer.Response, second); err != nil || !proto.Equal(first, second) {
			t.Errorf("again %v: got %v, want %v (%v)", again, second, first, err)
		}
	}
	txn := &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte("k")},
	}}}}
	for range 2 {
		answer = other.propose(session, 3, txn, false)
		response := new(pb.TxnResponse)
		if err := proto.Unmarshal(answer.Response, response); err != nil ||
			response.Responses[0].GetResponseDeleteRange().GetDeleted() != 1 {
			t.Errorf("txn: got %v, %v", response, err)
		}
	}
	answer = other.propose(session, 4, &pb.DeleteRangeRequest{Key: []byte("k")}, false)
	deleted := new(pb.DeleteRangeResponse)
	if err := proto.Unmarshal(answer.Response, deleted); err != nil || deleted.Deleted != 0 || deleted.Header.Revision != 4 {
		t.Errorf("delete: got %v, %v", deleted, err)
	}
}

func TestServices_Propose_sessions(t *testing.T) {
	s := serveNative(t, nil)
	c := openPropose(t, s, 0xc1)
	one := c.open()
	c.propose(one, 1, put("k"), false)
	two := c.open(one)
	three := c.open(two)
	if one == two || two == three {
		t.Errorf("sessions %x, %x and %x", one, two, three)
	}
	if answer := c.propose(one, 1, put("k"), true); answer.Verdict != quoratepb.Answer_VERDICT_GONE {
		t.Errorf("a session that was not kept: got %v", answer)
	}
	if answer := c.propose(two, 1, put("k"), false); answer.Verdict != quoratepb.Answer_VERDICT_APPLIED {
		t.Errorf("a session that was kept: got %v", answer)
	}
	foreign := openPropose(t, s, 0xc2)
	if answer := foreign.propose(three, 1, put("k"), false); answer.Verdict != quoratepb.Answer_VERDICT_GONE {
		t.Errorf("the session of another client: got %v", answer)
	}
	c.send(&quoratepb.ProposeRequest{Retire: []uint64{three}})
	for sequence := uint64(1); ; sequence++ {
		if answer := c.propose(three, sequence, put("k"), false); answer.Verdict == quoratepb.Answer_VERDICT_GONE {
			break
		}
	}
}

func TestServices_Propose_refused(t *testing.T) {
	s := serveNative(t, func(o *rpcOptions) { o.MaxTxnOps = 1 })
	c := openPropose(t, s, 0xc1)
	session := c.open()
	large := put("k")
	large.Value = make([]byte, 1600<<10)
	op := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put("k")}}
	for _, tc := range []struct {
		name              string
		session, sequence uint64
		request           proto.Message
		want              codes.Code
	}{
		{name: "no key", session: session, sequence: 1, request: put(""), want: codes.InvalidArgument},
		{name: "a member's session", session: 5, sequence: 1, request: put("k"), want: codes.InvalidArgument},
		{name: "no sequence", session: session, request: put("k"), want: codes.InvalidArgument},
		{name: "beyond the session", session: session, sequence: clients.ClientSessionLength + 1, request: put("k"),
			want: codes.InvalidArgument},
		{name: "too large", session: session, sequence: 1, request: large, want: codes.InvalidArgument},
		{name: "too many ops", session: session, sequence: 1, want: codes.InvalidArgument,
			request: &pb.TxnRequest{Success: []*pb.RequestOp{op, op}}},
	} {
		answer := c.propose(tc.session, tc.sequence, tc.request, false)
		if answer.Verdict != quoratepb.Answer_VERDICT_REFUSED || codes.Code(answer.Code) != tc.want || answer.Message == "" {
			t.Errorf("%s: got %v", tc.name, answer)
		}
	}
	if answer := c.propose(session, 1, put("k"), false); answer.Verdict != quoratepb.Answer_VERDICT_APPLIED {
		t.Errorf("the refused sequence with something better: got %v", answer)
	}
	anonymous, err := quoratepb.NewWriterClient(s.conn(t)).Propose(waitContext(t))
	if err == nil {
		if err = anonymous.Send(&quoratepb.ProposeRequest{}); err == nil {
			_, err = anonymous.Recv()
		}
	}
	if err == nil {
		t.Error("a stream without a client was served")
	}
}

// TestServices_Propose_quota refuses new proposals when the store is full, and lets the log decide about repeated ones.
func TestServices_Propose_quota(t *testing.T) {
	s := serveNative(t, func(o *rpcOptions) { o.QuotaBytes = 1 })
	c := openPropose(t, s, 0xc1)
	session := c.open()
	answer := c.propose(session, 1, put("k"), false)
	if answer.Verdict != quoratepb.Answer_VERDICT_REFUSED || codes.Code(answer.Code) != codes.ResourceExhausted {
		t.Errorf("new: got %v, want it refused", answer)
	}
	answer = c.propose(session, 2, put("k"), true)
	if answer.Verdict != quoratepb.Answer_VERDICT_APPLIED || codes.Code(answer.Code) != codes.ResourceExhausted {
		t.Errorf("again: got %v, want the log's rejection", answer)
	}
}

func TestServices_Propose_halfClose(t *testing.T) {
	s := serveNative(t, nil)
	c := openPropose(t, s, 0xc1)
	session := c.open()
	request, err := proto.Marshal(put("k"))
	if err != nil {
		t.Fatal(err)
	}
	c.send(&quoratepb.ProposeRequest{Proposals: []*quoratepb.Proposal{
		{Session: session, Sequence: 1, Kind: quoratepb.Proposal_KIND_PUT, Request: request},
	}})
	if err := c.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	answers := 0
	for {
		r, err := c.stream.Recv()
		if err != nil {
			break
		}
		answers += len(r.Answers)
	}
	if answers != 1 {
		t.Errorf("got %d answers after the last request, want 1", answers)
	}
}

func TestServices_Propose_standing(t *testing.T) {
	s := serveNative(t, nil)
	c := openPropose(t, s, 0xc1)
	c.send(&quoratepb.ProposeRequest{})
	status := c.recv(func(r *quoratepb.ProposeResponse) bool { return r.Status != nil }).Status
	if time.Duration(status.PatienceMs)*time.Millisecond != clients.DefaultClientPatience || status.MaxMessageBytes == 0 {
		t.Errorf("got %v", status)
	}
}
