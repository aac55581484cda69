package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
)

// name is a number of two parts: client and session, or client and number.
type name struct{ session, sequence uint64 }

// fakeCluster is the replicated table of results and the store of a cluster, behind any number of members.
type fakeCluster struct {
	mu        sync.Mutex
	highest   uint64
	sessions  map[name]map[uint64]*quoratepb.Answer // client and number -> sequence -> first answer
	executed  map[string]int                        // key -> how often
	revision  int64
	length    uint64
	opened    int
	voters    []uint64 // of which the clients may use the fast path
	term      uint64
	appliedAt map[string]int64          // key -> revision
	reserved  map[name]map[uint64]int64 // the revision at which all hold a proposal: client and number -> sequence
	fault     func(f *fakeCluster, p *quoratepb.Proposal) fault
}

// fault is what goes wrong with one proposal.
type fault int

const (
	noFault     fault = iota
	breakBefore       // the stream breaks before the proposal is applied
	breakAfter        // and after
	againBefore       // the member cannot tell, and it is not applied
	againAfter        // and it is
	twice             // two answers
	late              // the answer waits for the next message
	retire            // the session ends before it is applied
	retireAfter       // and after; no client is told
	refuse            // for good, before the log
	breakTold         // the leader's stream breaks after the verdict, before the answer
	disagree          // a voter holds it at another revision
	nextTerm          // the member is in another term
)

var errBroken = errors.New("the stream broke")

// fakeMember is one of them.
type fakeMember struct {
	quoratepb.UnimplementedWriterServer
	cluster *fakeCluster
	id      uint64
	leader  uint64
	foreign bool
}

func newFakeCluster() *fakeCluster {
	return &fakeCluster{
		reserved: map[name]map[uint64]int64{}, appliedAt: map[string]int64{}, term: 1,
		sessions: map[name]map[uint64]*quoratepb.Answer{}, executed: map[string]int{}, length: 100, revision: 1,
		fault: func(*fakeCluster, *quoratepb.Proposal) fault { return noFault },
	}
}

func (m *fakeMember) status() *quoratepb.MemberStatus {
	cluster := uint64(1)
	if m.foreign {
		cluster = 2
	}
	return &quoratepb.MemberStatus{
		TermConfig: m.cluster.termConfig(), Voters: m.cluster.voters, Fast: len(m.cluster.voters) > 0, Term: m.cluster.termConfig().Term,
		Cluster: cluster, Member: m.id, Leader: m.leader, SessionLength: m.cluster.length, MaxMessageBytes: 1 << 20,
	}
}

// Propose implements the service.
func (m *fakeMember) Propose(stream quoratepb.Writer_ProposeServer) error {
	client := uint64(0)
	var kept []*quoratepb.Answer
	locked := &lockedStream{Writer_ProposeServer: stream}
	defer locked.later.Wait()
	for {
		r, err := stream.Recv()
		if err != nil {
			return nil
		}
		if r.Key != nil {
			client = quoratepb.ClientID(r.Key)
		}
		response := &quoratepb.ProposeResponse{Answers: kept}
		kept = nil
		if r.TermConfig != nil {
			if err := m.fast(locked, response, client, r); err != nil {
				return err
			}
			continue
		}
		if r.Open != nil {
			response.Opened = m.cluster.open(client, r.Open.Keep)
		}
		for _, number := range r.Retire {
			m.cluster.retire(name{client, number})
		}
		for _, p := range r.Proposals {
			answers, hold, err := m.cluster.propose(client, p)
			if err != nil {
				return err
			}
			if hold {
				kept = append(kept, answers...)
				continue
			}
			response.Answers = append(response.Answers, answers...)
		}
		if len(r.Proposals) == 0 && r.Open == nil {
			response.Status = m.status()
			response.Status.Ping = r.Ping
		}
		if err := locked.Send(response); err != nil {
			return err
		}
	}
}

func (f *fakeCluster) open(client uint64, keep []uint64) *quoratepb.SessionOpened {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.highest++
	f.opened++
	for id := range f.sessions {
		kept := false
		for _, number := range keep {
			kept = kept || id.sequence == number
		}
		if id.session == client && !kept {
			delete(f.sessions, id)
		}
	}
	f.sessions[name{client, f.highest}] = map[uint64]*quoratepb.Answer{}
	return &quoratepb.SessionOpened{Session: f.highest}
}

func (f *fakeCluster) retire(session name) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, session)
}

// propose applies a proposal once, with whatever goes wrong. hold keeps the answer back.
func (f *fakeCluster) propose(client uint64, p *quoratepb.Proposal) (answers []*quoratepb.Answer, hold bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what := f.fault(f, p)
	again := &quoratepb.Answer{Session: p.Session, Sequence: p.Sequence, Verdict: quoratepb.Answer_VERDICT_AGAIN}
	switch what {
	case breakBefore:
		return nil, false, errBroken
	case againBefore:
		return []*quoratepb.Answer{again}, false, nil
	case retire:
		delete(f.sessions, name{client, p.Session})
	case refuse:
		return []*quoratepb.Answer{{
			Session: p.Session, Sequence: p.Sequence, Verdict: quoratepb.Answer_VERDICT_REFUSED,
			Code: uint32(codes.InvalidArgument), Message: "refused",
		}}, false, nil
	}
	answer := f.apply(name{client, p.Session}, p)
	switch what {
	case breakAfter:
		return nil, false, errBroken
	case againAfter:
		return []*quoratepb.Answer{again}, false, nil
	case retireAfter:
		delete(f.sessions, name{client, p.Session})
		return nil, false, errBroken
	case twice:
		return []*quoratepb.Answer{answer, answer}, false, nil
	}
	return []*quoratepb.Answer{answer}, what == late, nil
}

func (f *fakeCluster) apply(session name, p *quoratepb.Proposal) *quoratepb.Answer {
	answer := &quoratepb.Answer{Session: p.Session, Sequence: p.Sequence, Verdict: quoratepb.Answer_VERDICT_GONE}
	results := f.sessions[session]
	if results == nil {
		return answer
	}
	if first := results[p.Sequence]; first != nil {
		return first
	}
	put := new(pb.PutRequest)
	if proto.Unmarshal(p.Request, put) != nil || p.Sequence == 0 || p.Sequence > f.length {
		panic(fmt.Sprintf("a proposal that no client may make: %v", p))
	}
	f.executed[string(put.Key)]++
	answer.Verdict = quoratepb.Answer_VERDICT_APPLIED
	f.appliedAt[string(put.Key)] = f.reserve(session, p.Sequence)
	answer.Response, _ = proto.Marshal(&pb.PutResponse{Header: &pb.ResponseHeader{Revision: f.appliedAt[string(put.Key)]}})
	results[p.Sequence] = answer
	return answer
}

func (f *fakeCluster) times(key string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.executed[key]
}

// serveFake puts members behind connections in memory and returns a writer that knows them all.
func serveFake(t testing.TB, members ...*fakeMember) *writer {
	t.Helper()
	services := map[string]quoratepb.WriterClient{}
	var endpoints []string
	for i, m := range members {
		listener := bufconn.Listen(1 << 20)
		server := grpc.NewServer()
		if m.cluster != nil { // else it is some other server
			quoratepb.RegisterWriterServer(server, m)
		}
		go func() { _ = server.Serve(listener) }()
		conn, err := grpc.NewClient("passthrough:fake", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listener.Dial() }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = conn.Close()
			server.Stop()
		})
		endpoint := fmt.Sprintf("m%d", i)
		endpoints = append(endpoints, endpoint)
		services[endpoint] = quoratepb.NewWriterClient(conn)
	}
	follower := newFollower()
	follower.lead(&fakeWays{endpoints: endpoints})
	w := newWriter(context.Background(), follower, func(endpoint string) (quoratepb.WriterClient, error) {
		return services[endpoint], nil
	})
	t.Cleanup(w.close)
	return w
}

func putOne(ctx context.Context, w *writer, key string) (int64, error) {
	response := new(pb.PutResponse)
	err := w.write(ctx, quoratepb.Proposal_KIND_PUT, &pb.PutRequest{Key: []byte(key)}, response)
	return response.Header.GetRevision(), err
}

// chance draws a fault for some of the proposals.
func chance(random *rand.Rand, every int, faults ...fault) func(*fakeCluster, *quoratepb.Proposal) fault {
	return func(*fakeCluster, *quoratepb.Proposal) fault {
		if random.IntN(every) != 0 {
			return noFault
		}
		return faults[random.IntN(len(faults))]
	}
}
