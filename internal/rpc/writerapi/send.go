package writerapi

import (
	"errors"
	"io"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/clients"
)

// send delivers what there is to say, until the stream ends.
func (p *proposeStream) send() error {
	ctx := p.grpc.Context()
	for {
		changed := p.writer.options.Clients.ClusterStateChanged()
		response, ended, err := p.next()
		if response.Status != nil || response.Opened != nil || len(response.Answers) > 0 || len(response.Verdicts) > 0 {
			if err := p.grpc.Send(response); err != nil {
				return err
			}
			continue
		}
		if ended {
			return err
		}
		select {
		case <-p.wake:
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// next takes what waits to be said. ended means that nothing will follow, and err why.
func (p *proposeStream) next() (response *quoratepb.ProposeResponse, ended bool, err error) {
	p.mu.Lock()
	p.tab.Give(p.sending) // the last one was sent
	opened, asked, ping, answers := p.opened, p.asked, p.ping, p.finished
	p.opened, p.asked, p.finished = nil, false, nil
	said := p.heard.messages
	p.sending = p.heard.held
	for i := range answers {
		p.sending += answers[i].held
	}
	p.heard.messages, p.heard.held = nil, 0
	p.unread = 0
	p.room.Broadcast()
	idle := len(p.unanswered) == 0 && !p.opening
	switch {
	case errors.Is(p.received, io.EOF): // the client asks for nothing more, but wants its answers
		ended = idle
	case p.received != nil:
		ended, err = true, p.received
	}
	p.mu.Unlock()
	response = &quoratepb.ProposeResponse{Opened: opened, Verdicts: p.verdicts(said)}
	size := 0
	for i := range answers {
		answer := p.writer.proposalAnswer(p.grpc.Context(), &answers[i])
		response.Answers = append(response.Answers, answer)
		if size += len(answer.Response) + len(answer.Message); size > maxAnswerBytes {
			p.mu.Lock()
			p.finished = append(answers[i+1:len(answers):len(answers)], p.finished...)
			for k := range answers[i+1:] {
				p.wait(resultBytes(&answers[i+1+k].result))
				p.sending -= answers[i+1+k].held
			}
			p.mu.Unlock()
			break
		}
	}
	state := p.writer.options.Clients.ClusterState()
	if asked || p.told == nil || !p.told.Same(&state) {
		p.told = &state
		response.Status = p.status(&state)
	}
	if asked {
		response.Status.Ping = ping
	}
	return response, ended, err
}

func (p *proposeStream) status(f *clients.ClusterState) *quoratepb.MemberStatus {
	voters := make([]uint64, len(f.Voters))
	for i, id := range f.Voters {
		voters[i] = uint64(id)
	}
	return &quoratepb.MemberStatus{
		Cluster: p.writer.options.ClusterID, Member: p.writer.options.MemberID, Leader: uint64(f.Leader), Term: uint64(f.Term),
		TermConfig: termConfig(f.Term, f.Config), Voters: voters, Fast: f.Fast,
		SessionLength: clients.ClientSessionLength, MaxUnanswered: maxStreamProposals,
		PatienceMs:      uint64(p.writer.options.Clients.ClientPatience().Milliseconds()),
		MaxMessageBytes: uint64(p.writer.options.MaxMessageBytes),
		Clock:           uint64(time.Now().UnixNano()), // by which package member waits for stamps
	}
}
