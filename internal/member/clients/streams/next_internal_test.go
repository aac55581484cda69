package streams

import (
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/member/clients"
)

// put is the put of a client under a sequence.
func put(session, sequence uint64) *quoratepb.Proposal {
	return &quoratepb.Proposal{Session: session, Sequence: sequence, Kind: quoratepb.Proposal_KIND_PUT}
}

// Ensure that a client is told each state of the cluster once, and again if it asks, with what it asked by.
func TestStream_Next_status(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, _ := newTestStream(m)
	for _, step := range []struct {
		name   string
		leader uint64
		ping   uint64
		want   bool
	}{{"the first", 0, 0, true}, {"the same", 0, 0, false}, {"a leader", 3, 0, true}, {"a ping", 3, 7, true}, {"the same", 3, 0, false}} {
		m.state = clients.ClusterState{Leader: consensus.MemberID(step.leader)}
		if step.ping > 0 {
			s.Take(&quoratepb.ProposeRequest{Ping: step.ping})
			if need := s.Go(t.Context()); need != Done {
				t.Fatalf("%s: got need %v", step.name, need)
			}
		}
		r, ended, err := s.Next(t.Context(), time.Unix(1, 0))
		status := r.GetStatus()
		if (status != nil) != step.want || ended || err != nil {
			t.Errorf("%s: got %v, %v, %v", step.name, r, ended, err)
		}
		if status != nil && (status.Leader != step.leader || status.Ping != step.ping || status.Clock != 1e9) {
			t.Errorf("%s: got %v", step.name, status)
		}
	}
}

// Ensure that a client which sends nothing more gets its answers, and that a stream which ended for another reason says why.
func TestStream_End(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	s.Next(t.Context(), time.Time{})
	s.Take(proposes(put(session, 1)))
	s.Go(t.Context())
	s.Turned(nil, nil)
	if need := s.Go(t.Context()); need != Done || len(m.proposed) != 1 {
		t.Fatalf("got need %v, and %d commands are proposed", need, len(m.proposed))
	}
	s.End(io.EOF)
	if r, ended, err := s.Next(t.Context(), time.Time{}); r != nil || ended || err != nil {
		t.Errorf("with an answer due: got %v, %v, %v", r, ended, err)
	}
	m.proposed[0].Done.Complete(kv.Result{Revision: 2, Put: &kv.PutResult{}}, nil)
	r, ended, err := s.Next(t.Context(), time.Time{})
	if len(r.GetAnswers()) != 1 || !ended || err != nil {
		t.Errorf("with the answer: got %v, %v, %v", r, ended, err)
	}
	broken := errors.New("broken")
	s, _ = newTestStream(m)
	s.End(broken)
	s.End(io.EOF)
	if _, ended, err := s.Next(t.Context(), time.Time{}); !ended || !errors.Is(err, broken) {
		t.Errorf("a broken stream: got %v, %v", ended, err)
	}
}

// Ensure that the answers to many requests go in messages of a bounded size, in order.
func TestStream_Next_parts(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	s.all.options.Bounds.AnswerBytes = 2 * len("response")
	s.Next(t.Context(), time.Time{})
	for n := range uint64(7) {
		s.Take(proposes(put(session, n+1)))
		for s.Go(t.Context()) == Turn {
			s.Turned(nil, nil)
		}
	}
	for i := range m.proposed {
		m.proposed[i].Done.Complete(kv.Result{Put: &kv.PutResult{}}, nil)
	}
	for _, want := range []int{3, 3, 1, 0} {
		r, _, _ := s.Next(t.Context(), time.Time{})
		if len(r.GetAnswers()) != want {
			t.Errorf("%d answers, want %d", len(r.GetAnswers()), want)
		}
	}
	s.Close()
	if got := heldBytes(s.all); got != 0 {
		t.Errorf("%d bytes are held afterwards", got)
	}
}

// Ensure that a client opens one session at a time, and is told which.
func TestStream_Opened(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	driver := s.driver.(*counter)
	open := &quoratepb.ProposeRequest{Open: &quoratepb.OpenSession{Keep: []uint64{session}}}
	s.Take(open)
	if need := s.Go(t.Context()); need != Done || len(driver.opens) != 1 {
		t.Fatalf("got need %v, and %d sessions are opened", need, len(driver.opens))
	}
	s.Opened(s.owner.Session(session+4), nil)
	if r, _, _ := s.Next(t.Context(), time.Time{}); r.GetOpened().GetSession() != session+4 {
		t.Errorf("got %v", r)
	}
	s.Take(open)
	s.Go(t.Context())
	s.Opened(s.owner.Session(0), clients.ErrClientID)
	if r, _, _ := s.Next(t.Context(), time.Time{}); codes.Code(r.GetOpened().GetCode()) != codes.AlreadyExists {
		t.Errorf("under the id of a member: got %v", r)
	}
	s.Take(open)
	s.Go(t.Context())
	s.Take(open)
	if need := s.Go(t.Context()); need != Over || !errors.Is(s.over, errOpening) {
		t.Errorf("two at once: got need %v, and the stream ends with %v", need, s.over)
	}
}

// Ensure that a stream without room offers what it has before it waits, and goes on where it was.
func TestStream_Go_offersBeforeRoom(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	s, session := newTestStream(m)
	s.all.options.Bounds.Proposals = 1
	s.Take(&quoratepb.ProposeRequest{
		TermConfig: &quoratepb.TermConfig{}, Proposals: []*quoratepb.Proposal{put(session, 1), put(session, 2)}})
	if need := s.Go(t.Context()); need != Turn {
		t.Fatalf("got need %v", need)
	}
	s.Turned(nil, nil)
	if need := s.Go(t.Context()); need != Offer || len(s.Offering().Proposals) != 1 {
		t.Fatalf("got need %v", need)
	}
	if need := s.Go(t.Context()); need != Room {
		t.Fatalf("got need %v", need)
	}
	m.proposed[0].Done.Complete(kv.Result{Put: &kv.PutResult{}}, nil)
	s.Next(t.Context(), time.Time{})
	if need := s.Go(t.Context()); need != Turn {
		t.Fatalf("with room: got need %v", need)
	}
	s.Turned(nil, nil)
	if need := s.Go(t.Context()); need != Offer || len(s.Offering().Proposals) != 1 {
		t.Fatalf("the second: got need %v", need)
	}
	if need := s.Go(t.Context()); need != Done {
		t.Fatalf("at the end: got need %v", need)
	}
}

// Ensure that a client is let in by its key, if it has logged in, and that a client has so many streams.
func TestStreams_Begin(t *testing.T) {
	m := &fullMember{machine: fullMachine(t)}
	all, key := fullStreams(m), make([]byte, quoratepb.ClientKeyBytes)
	if _, err := all.Begin(t.Context(), key[1:], admission.Caller{}, &counter{}); !errors.Is(err, errNoClient) {
		t.Errorf("a short key: got %v", err)
	}
	m.denies = ErrDenied
	if _, err := all.Begin(t.Context(), key, admission.Caller{}, &counter{}); !errors.Is(err, ErrDenied) {
		t.Errorf("nobody who has logged in: got %v", err)
	}
	m.denies = nil
	for range maxClientStreams {
		s, err := all.Begin(t.Context(), key, admission.Caller{}, &counter{})
		if err != nil || s.Owner().ID != consensus.MemberID(quoratepb.ClientID(key)) {
			t.Fatalf("got %v, %v", s, err)
		}
	}
	if _, err := all.Begin(t.Context(), key, admission.Caller{}, &counter{}); !errors.Is(err, errTooManyClients) {
		t.Errorf("one stream more: got %v", err)
	}
	if got := all.Counts(); got.Registered != 1 || got.Refused != 1 {
		t.Errorf("counted are %+v", got)
	}
}
