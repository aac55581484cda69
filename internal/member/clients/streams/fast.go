package streams

import (
	"context"
	"slices"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// refusedHere is the refusal of a verdict on what never reached the voter's core; the others are the core's.
const refusedHere = 255

// termConfigOf is what a client believes, and when its offer is due, as the core knows it.
func termConfigOf(r *quoratepb.ProposeRequest) consensus.Message {
	f := r.TermConfig
	return consensus.Message{Due: r.Due, Term: consensus.Term(f.Term), Config: consensus.ConfigID{
		Index: consensus.Index(f.ConfigIndex), Term: consensus.Term(f.ConfigTerm), Stage: uint8(f.ConfigStage),
	}}
}

// listen makes the stream hear what the core says to its client, from its first offer on.
func (s *Stream) listen() error {
	if s.listens {
		return nil
	}
	detach, err := s.all.options.Clients.ListenFor(s.owner.ID, s)
	if err != nil {
		return errClientID
	}
	s.listens = true
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.detach = detach
	}
	s.mu.Unlock()
	if closed {
		detach()
	}
	return nil
}

// Hear implements clients.Listener. Verdicts for which there is no room are lost: the log has the answer, too.
func (s *Stream) Hear(message consensus.Message) {
	s.mu.Lock()
	if bytes := verdictBytes(&message); !s.closed && len(message.Verdicts) > 0 && s.tab.Take(int64(bytes)) {
		s.heard.messages = append(s.heard.messages, message)
		s.heard.verdicts += len(message.Verdicts)
		s.heard.held += int64(bytes)
		s.wait(bytes)
	}
	s.mu.Unlock()
	s.driver.Ready()
}

// roomForVerdicts reports whether the client has taken so many verdicts that it may cause more, or will not take any.
func (s *Stream) roomForVerdicts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.heard.verdicts < s.all.options.Bounds.Verdicts {
		return true
	}
	s.waits = true
	return false
}

// offers says whether something is to be offered.
func (s *Stream) offers() Need {
	if len(s.offer.Proposals) > 0 {
		return Offer
	}
	return goesOn
}

// Offering returns what is to be offered to the core, once.
func (s *Stream) Offering() consensus.Message {
	offer := s.offer
	s.offer.Proposals = nil
	return offer
}

// expect offers a command to the core, if this member leads.
func (s *Stream) expect(one *proposal, command *kv.Command) {
	s.mu.Lock()
	s.offered[one.id] = one
	s.mu.Unlock()
	offered, leads, err := s.all.options.Clients.ExpectFor(one.id, command, one)
	if err != nil {
		one.refuse(err)
		return
	}
	if leads {
		s.offer.Proposals = append(s.offer.Proposals, offered)
	}
	if s.closedMeanwhile() {
		s.abandon(one)
	}
}

// record offers records to the core, those that are wrong excepted.
func (s *Stream) record(ctx context.Context) {
	s.offer = termConfigOf(s.request)
	refused := s.offer
	s.offer.Kind, refused.Kind = consensus.MsgRecord, consensus.MsgRecorded
	unsettled := s.all.options.Requests.Unsettled(ctx)
	for _, r := range s.request.Records {
		id := s.owner.Proposal(r.Session, r.Sequence)
		recorded, err := s.recorded(ctx, id, r, unsettled)
		if err == nil {
			s.offer.Proposals = append(s.offer.Proposals, recorded)
			continue
		}
		refused.Verdicts = append(refused.Verdicts, consensus.Verdict{
			Attempt: consensus.Attempt{Proposal: id}, Refusal: refusedHere,
		})
	}
	s.Hear(refused)
}

// recorded returns what the core is to hold of a record.
func (s *Stream) recorded(
	ctx context.Context, id consensus.ProposalID, r *quoratepb.Proposal, unsettled bool,
) (none consensus.Proposal, err error) {
	if err := s.all.checkName(id); err != nil {
		return none, err
	}
	if unsettled {
		return none, ErrDenied
	}
	if err := s.all.room(id); err != nil {
		return none, err
	}
	command, err := s.all.admitCheap(ctx, id, r)
	if err != nil {
		return none, err
	}
	return s.all.options.Clients.EncodeFor(id, command)
}

// verdictWire is about what a verdict takes in a message beside its response.
const verdictWire = 96

// verdicts are what was heard, as far as it fits into a message, and the rest.
func (s *Stream) verdicts(messages []consensus.Message) (groups []*quoratepb.Verdicts, rest []consensus.Message) {
	size := 0
	for i := range messages {
		m := &messages[i]
		group := &quoratepb.Verdicts{TermConfig: termConfig(m.Term, m.Config), Leader: m.Kind == consensus.MsgFast}
		for k := range m.Verdicts {
			if v := s.verdict(m.Kind, &m.Verdicts[k]); v != nil {
				group.Verdicts = append(group.Verdicts, v)
				size += verdictWire + len(v.Response)
			}
		}
		if len(group.Verdicts) > 0 {
			groups = append(groups, group)
		}
		if size > s.all.options.Bounds.AnswerBytes {
			return groups, slices.Clone(messages[i+1:])
		}
	}
	return groups, nil
}

// verdict is one of them, with the response of etcd's API if the leader gave one; nil if there is nothing to say any more.
func (s *Stream) verdict(kind consensus.MessageKind, v *consensus.Verdict) *quoratepb.Verdict {
	s.mu.Lock()
	s.heard.verdicts--
	one := s.offered[v.Proposal]
	s.mu.Unlock()
	answer := &quoratepb.Verdict{
		Session: v.Proposal.Session.Number, Sequence: v.Proposal.Sequence, Revision: v.Revision, Refusal: uint32(v.Refusal),
	}
	if v.Refusal != consensus.RefusedNot {
		return answer
	}
	answer.Digest = v.Digest[:]
	if kind != consensus.MsgFast {
		return answer
	}
	result, err := kv.DecodeResult(v.Reply)
	if err != nil || one == nil || result.Err != nil || !answers(one.kind, &result) {
		return nil // it has its answer
	}
	answer.Response = s.all.options.Requests.Response(one.kind, &result)
	return answer
}
