package streams

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/clients"
)

// Next takes what there is to send now; nil: nothing. The driver has sent the response before. ended means that nothing will
// follow, and err is why. Then, or if there is nothing, its driver waits until Ready, or until the state of the cluster has
// changed.
func (s *Stream) Next(ctx context.Context, now time.Time) (response *quoratepb.ProposeResponse, ended bool, err error) {
	s.mu.Lock()
	s.sentAll()
	opened, asked, ping, answers := s.opened, s.asked, s.ping, s.finished
	s.opened, s.asked, s.finished = nil, false, nil
	said := s.heard.messages
	s.sending = s.heard.held
	for i := range answers {
		s.sending += answers[i].held
	}
	s.heard.messages, s.heard.held = nil, 0
	s.taken = taken{len(answers), s.unread}
	s.room()
	ended, err = s.ended()
	s.mu.Unlock()

	answered, rest := s.answers(ctx, answers)
	verdicts, unsaid := s.verdicts(said)
	s.keep(rest, unsaid)
	var status *quoratepb.MemberStatus
	if state := s.all.options.Clients.ClusterState(); asked || !s.greeted || !s.told.Same(&state) {
		s.told, s.greeted = state, true
		status = s.all.status(&state, now)
	}
	if asked {
		status.Ping = ping
	}
	if status == nil && opened == nil && len(answered) == 0 && len(verdicts) == 0 {
		s.mu.Lock() // the verdicts that it took were for proposals that have their answers
		s.sentAll()
		s.room()
		s.mu.Unlock()
		return nil, ended, err
	}
	return &quoratepb.ProposeResponse{Status: status, Opened: opened, Answers: answered, Verdicts: verdicts}, ended, err
}

// answers are those to finished proposals, as far as they fit into a message; the rest stays. Answers that have to be read may
// wait for memory, and do not hold the others up: a message has those at hand, or those that are read, up to the first that is
// refused.
func (s *Stream) answers(ctx context.Context, all []finished) (answers []*quoratepb.Answer, rest []finished) {
	left, atHand := 0, 0
	for i := range all {
		if all[i].reads() {
			left++
		} else {
			atHand++
		}
	}
	reading := left > 0 && (s.readsOn || atHand == 0)
	size, over := 0, false
	for i := range all {
		f := &all[i]
		if over || f.reads() != reading {
			rest = append(rest, *f)
			continue
		}
		answer := s.all.proposalAnswer(ctx, f)
		answers = append(answers, answer)
		if memory := f.result.Memory; memory != nil {
			s.mu.Lock()
			s.accounts = append(s.accounts, memory)
			s.mu.Unlock()
		}
		size += len(answer.Response) + len(answer.Message)
		over = size > s.all.options.Bounds.AnswerBytes || reading && codes.Code(answer.Code) == codes.ResourceExhausted
	}
	s.readsOn = !reading && left > 0
	return answers, rest
}

// reads reports whether the answer has to be read from the store when it is sent.
func (f *finished) reads() bool { return f.result.Left != nil }

// keep keeps for the next message what did not fit into this one. The rest of what was taken is not unread any more.
func (s *Stream) keep(rest []finished, unsaid []consensus.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all.options.Faults.LosesRest {
		rest = nil
	}
	s.unread -= s.taken.unread
	s.taken = taken{}
	s.finished = append(rest, s.finished...)
	for i := range rest {
		s.sending -= rest[i].held
		s.wait(resultBytes(&rest[i].result))
	}
	s.heard.messages = append(unsaid, s.heard.messages...)
	for i := range unsaid {
		bytes := verdictBytes(&unsaid[i])
		s.heard.held += int64(bytes)
		s.sending -= int64(bytes)
		s.wait(bytes)
	}
	s.room()
}

func (all *Streams) status(state *clients.ClusterState, now time.Time) *quoratepb.MemberStatus {
	voters := make([]uint64, len(state.Voters))
	for i, id := range state.Voters {
		voters[i] = uint64(id)
	}
	o := &all.options
	return &quoratepb.MemberStatus{
		Cluster: o.ClusterID, Member: o.MemberID, Leader: uint64(state.Leader), Term: uint64(state.Term),
		TermConfig: termConfig(state.Term, state.Config), Voters: voters, Fast: state.Fast,
		SessionLength: o.SessionLength, MaxUnanswered: uint64(o.Bounds.Proposals),
		PatienceMs:      uint64(o.Clients.ClientPatience().Milliseconds()),
		MaxMessageBytes: uint64(o.MaxMessageBytes),
		Clock:           uint64(now.UnixNano()), // by which package member waits for stamps
	}
}
