package client

import (
	"crypto/sha256"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
)

func (f *fakeCluster) termConfig() *quoratepb.TermConfig {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &quoratepb.TermConfig{Term: f.term, ConfigTerm: 1}
}

// reserve returns the revision at which every member holds a proposal, and at which it is applied.
func (f *fakeCluster) reserve(session name, sequence uint64) int64 {
	if f.reserved[session] == nil {
		f.reserved[session] = map[uint64]int64{}
	}
	if f.reserved[session][sequence] == 0 {
		f.revision++
		f.reserved[session][sequence] = f.revision
	}
	return f.reserved[session][sequence]
}

// lockedStream is a stream on which some answers come later.
type lockedStream struct {
	quoratepb.Writer_ProposeServer
	mu    sync.Mutex
	later sync.WaitGroup
}

// Send implements the stream.
func (s *lockedStream) Send(r *quoratepb.ProposeResponse) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Writer_ProposeServer.Send(r)
}

// sendLater sends what the log has to say, some time after the verdict.
func (s *lockedStream) sendLater(answers []*quoratepb.Answer) {
	s.later.Go(func() {
		<-time.After(3 * time.Millisecond)
		_ = s.Send(&quoratepb.ProposeResponse{Answers: answers})
	})
}

// fast serves what is offered to all voters, with whatever goes wrong.
func (m *fakeMember) fast(
	stream *lockedStream, response *quoratepb.ProposeResponse, client uint64, r *quoratepb.ProposeRequest,
) error {
	f := m.cluster
	verdicts := &quoratepb.Verdicts{TermConfig: f.termConfig(), Leader: m.id == m.leader}
	response.Verdicts = append(response.Verdicts, verdicts)
	for _, p := range r.Records {
		verdicts.Verdicts = append(verdicts.Verdicts, f.hold(client, p, verdicts))
	}
	for _, p := range r.Proposals {
		v, answers, err := f.answerFast(client, p, verdicts)
		if v != nil {
			verdicts.Verdicts = append(verdicts.Verdicts, v)
		}
		if len(answers) > 0 && p.Sequence%4 > 0 {
			stream.sendLater(answers)
		} else {
			response.Answers = append(response.Answers, answers...)
		}
		if err != nil {
			_ = stream.Send(response)
			return err
		}
	}
	return stream.Send(response)
}

func digestOf(p *quoratepb.Proposal) []byte {
	digest := sha256.Sum256(p.Request)
	return digest[:]
}

func (f *fakeCluster) hold(client uint64, p *quoratepb.Proposal, all *quoratepb.Verdicts) *quoratepb.Verdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := &quoratepb.Verdict{Session: p.Session, Sequence: p.Sequence, Digest: digestOf(p)}
	v.Revision = uint64(f.reserve(name{client, p.Session}, p.Sequence))
	switch f.fault(f, p) {
	case disagree:
		v.Revision++
	case nextTerm:
		all.TermConfig.Term++
	case refuse:
		v.Revision, v.Refusal = 0, 3
	}
	return v
}

func (f *fakeCluster) answerFast(
	client uint64, p *quoratepb.Proposal, all *quoratepb.Verdicts,
) (v *quoratepb.Verdict, answers []*quoratepb.Answer, err error) {
	f.mu.Lock()
	what := f.fault(f, p)
	revision := f.reserve(name{client, p.Session}, p.Sequence)
	v = &quoratepb.Verdict{Session: p.Session, Sequence: p.Sequence, Revision: uint64(revision), Digest: digestOf(p)}
	v.Response, _ = proto.Marshal(&pb.PutResponse{Header: &pb.ResponseHeader{Revision: revision}})
	if what == nextTerm {
		all.TermConfig.Term++
	}
	f.mu.Unlock()
	switch what {
	case breakBefore:
		return nil, nil, errBroken
	case breakTold: // it is in the leader's log: it will be applied, but no client is told so
		_, _, _ = f.propose(client, p)
		return v, nil, errBroken
	case againBefore: // and no verdict
		v = nil
	}
	answers, hold, err := f.propose(client, p)
	if v != nil {
		f.mu.Lock()
		f.apply(name{client, p.Session}, p) // it is in the log, whatever else goes wrong
		f.mu.Unlock()
	}
	if hold || err != nil {
		return v, nil, errBroken
	}
	return v, answers, nil
}
