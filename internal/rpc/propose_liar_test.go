package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/limits/answers"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/clients"
)

// liarServer serves an honest client beside a hostile one, and reports the memory that both use in the member.
type liarServer struct {
	*server
	member  *member.Member
	answers *answers.Budget
}

func serveLiar(t testing.TB) *liarServer {
	s := &liarServer{answers: answers.New(0, 0)}
	s.server = serveNative(t, func(o *rpcOptions) { o.Answers = s.answers })
	s.member = s.backend.(*member.Member)
	return s
}

// awaitNothingHeld waits until no offer, no proposal and no answer of a client is in memory any more.
func (s *liarServer) awaitNothingHeld(t testing.TB) {
	t.Helper()
	for ctx := waitContext(t); ; <-time.After(time.Millisecond) {
		offered, answered := s.member.Clients().OfferedBytes(), s.answers.UsedBytes()
		if offered == 0 && answered == 0 {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("%d bytes are offered, and %d of answers are kept", offered, answered)
		}
	}
	s.awaitMetric(t, "etcd_server_proposals_pending 0")
}

// honest is a client whose writes must stay right, whatever others do.
type honest struct {
	*proposeClient
	session, sequence uint64
	first             []byte // the response to sequence 1
}

func (c *honest) begin() {
	c.t.Helper()
	c.session, c.sequence, c.first = c.open(), 0, nil
}

// write counts a key up, and repeats the first write of the session.
func (c *honest) write() {
	c.t.Helper()
	c.sequence++
	key := fmt.Appendf(nil, "honest/%x", c.session)
	request := &pb.PutRequest{Key: key, Value: fmt.Append(nil, c.sequence), PrevKv: true}
	answer, response := c.propose(c.session, c.sequence, request, false), new(pb.PutResponse)
	if err := proto.Unmarshal(answer.Response, response); err != nil || answer.Verdict != quoratepb.Answer_VERDICT_APPLIED ||
		answer.Code != 0 || answer.Sequence != c.sequence {
		c.t.Fatalf("the honest client's write %d: %v, %v", c.sequence, answer, err)
	}
	if c.sequence == 1 {
		c.first = answer.Response
		return
	}
	if got := string(response.PrevKv.GetValue()); got != fmt.Sprint(c.sequence-1) {
		c.t.Fatalf("the honest client's write %d met %q", c.sequence, got)
	}
	request.Value = []byte("1")
	if again := c.propose(c.session, 1, request, true); !bytes.Equal(again.Response, c.first) {
		c.t.Fatalf("the honest client's first write again: %v, want %x", again, c.first)
	}
}

// liarStream is one stream of a hostile client.
type liarStream struct {
	t      testing.TB
	grpc   quoratepb.Writer_ProposeClient
	leave  context.CancelFunc
	sent   int // proposals
	closed bool
	told   chan toldLiar
}

// toldLiar is everything that a stream received until its end.
type toldLiar struct {
	answers []*quoratepb.Answer
	opened  []*quoratepb.SessionOpened
	err     error
}

// lie begins a stream of the hostile client.
func (s *liarServer) lie(t testing.TB, writer quoratepb.WriterClient) *liarStream {
	t.Helper()
	ctx, leave := context.WithTimeout(t.Context(), 3*testWait) // tens of thousands of messages, with the race detector, too
	stream, err := writer.Propose(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l := &liarStream{t: t, grpc: stream, leave: leave, told: make(chan toldLiar, 1)}
	l.send(&quoratepb.ProposeRequest{Key: clientKey(0xbad)})
	go func() {
		var all toldLiar
		for {
			r, err := stream.Recv()
			if err != nil {
				all.err = err
				l.told <- all
				return
			}
			all.answers = append(all.answers, r.Answers...)
			if r.Opened != nil {
				all.opened = append(all.opened, r.Opened)
			}
		}
	}()
	return l
}

func (l *liarStream) send(r *quoratepb.ProposeRequest) {
	if !l.closed && l.grpc.Send(r) == nil {
		l.sent += len(r.Proposals)
	}
}

// end sends no more and returns what the stream received. Unless it was refused, each proposal has its answer.
func (l *liarStream) end() toldLiar {
	l.t.Helper()
	l.closed = true
	if err := l.grpc.CloseSend(); err != nil {
		l.t.Fatal(err)
	}
	all := <-l.told
	l.leave()
	switch status.Code(all.err) {
	case codes.Unknown:
		if !errors.Is(all.err, io.EOF) {
			l.t.Fatalf("the hostile client's stream ended with %v", all.err)
		}
		if len(all.answers) != l.sent {
			l.t.Fatalf("%d proposals of the hostile client have %d answers", l.sent, len(all.answers))
		}
	case codes.InvalidArgument, codes.ResourceExhausted: // an error text about the mistake
	default:
		l.t.Fatalf("the hostile client's stream ended with %v", all.err)
	}
	return all
}

// oneResult checks that all good answers to one id are those of one execution.
func oneResult(t testing.TB, all []*quoratepb.Answer) {
	t.Helper()
	type id struct{ session, sequence uint64 }
	revisions := map[id]int64{}
	for _, a := range all {
		if a.Verdict != quoratepb.Answer_VERDICT_APPLIED || a.Code != 0 {
			if a.Message == "" && a.Verdict != quoratepb.Answer_VERDICT_ABORTED {
				t.Fatalf("no word about why: %v", a)
			}
			continue
		}
		response := new(pb.PutResponse) // the header is the first field of each response
		if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(a.Response, response); err != nil &&
			proto.Unmarshal(a.Response, new(pb.TxnResponse)) != nil && proto.Unmarshal(a.Response, new(pb.DeleteRangeResponse)) != nil {
			t.Fatalf("%v: %v", a, err)
		}
		name, revision := id{a.Session, a.Sequence}, response.Header.GetRevision()
		if before, known := revisions[name]; known && before != revision {
			t.Fatalf("sequence %d was executed at revisions %d and %d", a.Sequence, before, revision)
		}
		revisions[name] = revision
	}
}

// liarKinds are requests whose responses tell their kinds apart.
func liarKinds(t testing.TB) []*quoratepb.Proposal {
	request := func(kind quoratepb.Proposal_Kind, m proto.Message) *quoratepb.Proposal {
		encoded, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return &quoratepb.Proposal{Kind: kind, Request: encoded}
	}
	key := []byte("liar")
	wide := &pb.TxnRequest{}
	for i := range 128 {
		wide.Success = append(wide.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
			RequestPut: &pb.PutRequest{Key: fmt.Appendf(nil, "liar/%d", i), PrevKv: true}}})
	}
	return []*quoratepb.Proposal{
		request(quoratepb.Proposal_KIND_PUT, &pb.PutRequest{Key: key, Value: []byte("v")}),
		request(quoratepb.Proposal_KIND_DELETE_RANGE, &pb.DeleteRangeRequest{Key: key}),
		request(quoratepb.Proposal_KIND_TXN, &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{
			RequestPut: &pb.PutRequest{Key: key, Value: []byte("t")}}}}}),
		request(quoratepb.Proposal_KIND_PUT, &pb.PutRequest{Key: key, Value: make([]byte, 100<<10), PrevKv: true}),
		request(quoratepb.Proposal_KIND_DELETE_RANGE, &pb.DeleteRangeRequest{Key: key, RangeEnd: []byte("lias"), PrevKv: true}),
		request(quoratepb.Proposal_KIND_TXN, wide),
		{Kind: quoratepb.Proposal_KIND_PUT}, {Kind: quoratepb.Proposal_KIND_UNSPECIFIED, Request: []byte("x")},
		{Kind: 99}, {Kind: quoratepb.Proposal_KIND_TXN, Request: []byte{0xff, 0xff, 0xff}},
	}
}

func under(p *quoratepb.Proposal, session, sequence uint64, again bool) *quoratepb.Proposal {
	return &quoratepb.Proposal{Session: session, Sequence: sequence, Kind: p.Kind, Request: p.Request, Again: again}
}

// TestServices_Propose_otherKind answers a client that gives one id to two kinds of requests with an error, not with an empty
// response to the request that was never executed: in one message and in the next, on the fast path and off it, repeated or
// not.
func TestServices_Propose_otherKind(t *testing.T) {
	s := serveLiar(t)
	c, kinds := openPropose(t, s.server, 0xbad), liarKinds(t)
	session, sequence := c.open(), uint64(0)
	for one := range 6 {
		for two := range 6 {
			if kinds[one].Kind == kinds[two].Kind {
				continue
			}
			for _, how := range []struct {
				name         string
				apart, again bool
				on           *quoratepb.TermConfig
			}{
				{name: "in one message"}, {name: "offered in one message", on: c.first.TermConfig},
				{name: "afterwards", apart: true}, {name: "again", apart: true, again: true},
				{name: "offered afterwards", apart: true, on: c.first.TermConfig},
			} {
				sequence++
				first, second := under(kinds[one], session, sequence, false), under(kinds[two], session, sequence, how.again)
				var got []*quoratepb.Answer
				answers := func(r *quoratepb.ProposeResponse) bool {
					got = append(got, r.Answers...)
					return len(got) == 2
				}
				if how.apart {
					c.send(&quoratepb.ProposeRequest{TermConfig: how.on, Proposals: []*quoratepb.Proposal{first}})
					c.recv(func(r *quoratepb.ProposeResponse) bool { got = append(got, r.Answers...); return len(got) == 1 })
					c.send(&quoratepb.ProposeRequest{TermConfig: how.on, Proposals: []*quoratepb.Proposal{second}})
				} else {
					c.send(&quoratepb.ProposeRequest{TermConfig: how.on, Proposals: []*quoratepb.Proposal{first, second}})
				}
				c.recv(answers)
				good := 0
				for _, a := range got {
					switch {
					case a.Verdict == quoratepb.Answer_VERDICT_APPLIED && a.Code == 0 && len(a.Response) > 0:
						good++
					case a.Verdict != quoratepb.Answer_VERDICT_REFUSED || codes.Code(a.Code) != codes.InvalidArgument || len(a.Response) > 0:
						t.Errorf("%v and then %v, %s: got %v", kinds[one].Kind, kinds[two].Kind, how.name, a)
					}
				}
				if good != 1 {
					t.Errorf("%v and then %v, %s: %d were answered as executed, want one", kinds[one].Kind, kinds[two].Kind, how.name, good)
				}
			}
		}
	}
}

// TestServices_Propose_liar answers every message of a client with an error text or with its own result, while another client's
// writes stay right, and keeps nothing of it once it has left.
func TestServices_Propose_liar(t *testing.T) {
	s := serveLiar(t)
	good := &honest{proposeClient: openPropose(t, s.server, 0xc1)}
	good.begin()
	writer, kinds := quoratepb.NewWriterClient(s.conn(t)), liarKinds(t)
	bad := openPropose(t, s.server, 0xbad)
	put, future := kinds[0], &quoratepb.TermConfig{Term: math.MaxUint64, ConfigIndex: math.MaxUint64, ConfigTerm: math.MaxUint64,
		ConfigStage: math.MaxUint32}
	here := bad.first.TermConfig
	many := func(n int, again bool, session uint64, name func(i int) uint64) (all []*quoratepb.Proposal) {
		for i := range n {
			all = append(all, under(put, session, name(i), again))
		}
		return all
	}
	times := 10_000
	if testing.Short() {
		times = 1000
	}
	one := func(int) uint64 { return 1 }
	each := func(i int) uint64 { return uint64(i + 1) }
	for _, tc := range []struct {
		name     string
		times    int
		messages func(session uint64) []*quoratepb.ProposeRequest
		ends     codes.Code
	}{
		{name: "one message very often", times: times, messages: func(session uint64) []*quoratepb.ProposeRequest {
			return []*quoratepb.ProposeRequest{{Proposals: many(1, false, session, one)}}
		}},
		{name: "one message very often, said to be again", times: times, messages: func(session uint64) []*quoratepb.ProposeRequest {
			return []*quoratepb.ProposeRequest{{Proposals: many(1, true, session, one)}}
		}},
		{name: "one id 10,000 times in a message", messages: func(session uint64) []*quoratepb.ProposeRequest {
			return []*quoratepb.ProposeRequest{{Proposals: many(10_000, false, session, one)}}
		}},
		{name: "one id 5,000 times in an offer", messages: func(session uint64) []*quoratepb.ProposeRequest {
			return []*quoratepb.ProposeRequest{{TermConfig: here, Proposals: many(5_000, false, session, one)}}
		}},
		{name: "more offers in a message than may wait", messages: func(session uint64) []*quoratepb.ProposeRequest {
			return []*quoratepb.ProposeRequest{{TermConfig: here, Proposals: many(5_000, false, session, each)}}
		}},
		{name: "10,000 records", messages: func(session uint64) []*quoratepb.ProposeRequest {
			return []*quoratepb.ProposeRequest{{TermConfig: here, Records: many(10_000, true, session, each)}}
		}},
		{name: "a term of the future", times: 20, messages: func(session uint64) []*quoratepb.ProposeRequest {
			return []*quoratepb.ProposeRequest{{TermConfig: future, Proposals: many(5, false, session, each),
				Records: many(5, false, session, each)}}
		}},
		{name: "a stamp of the future", times: 20, messages: func(session uint64) []*quoratepb.ProposeRequest {
			return []*quoratepb.ProposeRequest{{TermConfig: here, Due: math.MaxUint64, Proposals: many(5, false, session, each)},
				{TermConfig: here, Due: 1, Proposals: many(5, false, session, each)}}
		}},
		{name: "sequences that cannot be", messages: func(session uint64) []*quoratepb.ProposeRequest {
			return []*quoratepb.ProposeRequest{{Proposals: []*quoratepb.Proposal{
				under(put, session, 0, false), under(put, session, 0, true), under(put, session, math.MaxUint64, true),
				under(put, session, clients.ClientSessionLength, false), under(put, session, clients.ClientSessionLength+1, true)}}}
		}},
		{name: "sessions of others", messages: func(session uint64) []*quoratepb.ProposeRequest {
			r := &quoratepb.ProposeRequest{}
			for _, other := range []uint64{0, 1, good.session, session + 1, math.MaxUint64, math.MaxUint64 >> 1} {
				for _, again := range []bool{false, true} {
					r.Proposals = append(r.Proposals, under(put, other, 1, again))
				}
			}
			return []*quoratepb.ProposeRequest{r, {Retire: []uint64{0, good.session, math.MaxUint64}}, {TermConfig: here, Proposals: r.Proposals}}
		}},
		{name: "a session that it has just given up", messages: func(session uint64) []*quoratepb.ProposeRequest {
			return []*quoratepb.ProposeRequest{{Retire: []uint64{session}, Proposals: many(50, false, session, each)},
				{TermConfig: here, Proposals: many(50, true, session, each)}}
		}},
		{name: "a last session of the future", messages: func(uint64) []*quoratepb.ProposeRequest {
			return []*quoratepb.ProposeRequest{{Open: &quoratepb.OpenSession{Above: math.MaxUint64 - 1}}}
		}},
		{name: "the last session of all", ends: codes.InvalidArgument, messages: func(uint64) []*quoratepb.ProposeRequest {
			return []*quoratepb.ProposeRequest{{Open: &quoratepb.OpenSession{Above: math.MaxUint64}}}
		}},
		{name: "kinds and requests that there are not", messages: func(session uint64) []*quoratepb.ProposeRequest {
			r := &quoratepb.ProposeRequest{}
			for i, kind := range kinds[6:] {
				r.Proposals = append(r.Proposals, under(kind, session, each(i), false), under(kind, session, each(i), true))
			}
			return []*quoratepb.ProposeRequest{r, {TermConfig: here, Proposals: r.Proposals, Records: r.Proposals}}
		}},
		{name: "many keys, offered and recorded", times: 20, messages: func(session uint64) []*quoratepb.ProposeRequest {
			wide := []*quoratepb.Proposal{under(kinds[5], session, 1, false), under(kinds[4], session, 2, false)}
			return []*quoratepb.ProposeRequest{{TermConfig: here, Proposals: wide, Records: wide}}
		}},
		{name: "nothing at all", times: 1000, messages: func(uint64) []*quoratepb.ProposeRequest {
			return []*quoratepb.ProposeRequest{{}, {TermConfig: &quoratepb.TermConfig{}}}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bad.t, good.t = t, t
			session := bad.open()
			streams := []*liarStream{s.lie(t, writer), s.lie(t, writer)}
			for range max(tc.times, 1) {
				for _, m := range tc.messages(session) {
					for _, l := range streams {
						l.send(m)
					}
				}
			}
			good.write()
			var answers []*quoratepb.Answer
			for _, l := range streams {
				all := l.end()
				if tc.ends != 0 && status.Code(all.err) != tc.ends {
					t.Errorf("it ended with %v, want %v", all.err, tc.ends)
				}
				answers = append(answers, all.answers...)
			}
			oneResult(t, answers)
			good.write()
			s.awaitNothingHeld(t)
		})
	}
}
