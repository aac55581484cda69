package writerapi

import (
	"slices"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// refusedHere is the refusal of a verdict on what never reached the voter's core; the others are the core's.
const refusedHere = 255

// maxVerdicts is how many verdicts may wait for a client before no more is read from it.
const maxVerdicts = maxStreamProposals

// heard is what the member's core says to the client, and how many verdicts of it are not sent yet.
type heard struct {
	messages []consensus.Message
	verdicts int
	held     int64 // of the stream's tab
}

// termConfigOf is what a client believes, and when its offer is due, as the core knows it.
func termConfigOf(r *quoratepb.ProposeRequest) consensus.Message {
	f := r.TermConfig
	return consensus.Message{Due: r.Due, Term: consensus.Term(f.Term), Config: consensus.ConfigID{
		Index: consensus.Index(f.ConfigIndex), Term: consensus.Term(f.ConfigTerm), Stage: uint8(f.ConfigStage),
	}}
}

func termConfig(term consensus.Term, config consensus.ConfigID) *quoratepb.TermConfig {
	return &quoratepb.TermConfig{
		Term: uint64(term), ConfigIndex: uint64(config.Index), ConfigTerm: uint64(config.Term),
		ConfigStage: uint32(config.Stage),
	}
}

// listen makes the stream hear what the core says to its client, from its first offer on.
func (p *proposeStream) listen() error {
	if p.detach != nil {
		return nil
	}
	detach, err := p.writer.options.Clients.ListenFor(p.owner.ID, p)
	if err != nil {
		return errClientID
	}
	p.detach = detach
	return nil
}

// Hear implements clients.Listener.
func (p *proposeStream) Hear(message consensus.Message) {
	p.mu.Lock()
	if !p.closed && len(message.Verdicts) > 0 {
		bytes := verdictBytes(&message)
		p.heard.messages = append(p.heard.messages, message)
		p.heard.verdicts += len(message.Verdicts)
		if p.tab.Take(int64(bytes)) {
			p.heard.held += int64(bytes)
		} else {
			bytes = maxUnreadBytes + 1 // the stream ends
		}
		p.wait(bytes)
	}
	p.mu.Unlock()
	p.signal()
}

// fast serves what a client offers to all voters at once. The error ends the stream.
func (p *proposeStream) fast(request *quoratepb.ProposeRequest) error {
	if err := p.listen(); err != nil {
		return err
	}
	p.mu.Lock()
	for !p.closed && p.heard.verdicts >= maxVerdicts {
		p.room.Wait()
	}
	p.mu.Unlock()
	p.record(request)
	message := termConfigOf(request)
	message.Kind = consensus.MsgFastPropose
	offer := func() {
		p.writer.options.Clients.Offer(p.grpc.Context(), p.owner.ID, message)
		message.Proposals = nil
	}
	waits := func() { // the turn that the next one waits for may be that of one before it
		if p.handOver(); len(message.Proposals) > 0 {
			offer()
		}
	}
	for _, r := range request.Proposals {
		command, one, err := p.begin(r, waits)
		if err != nil {
			return err
		}
		if command == nil {
			continue
		}
		p.mu.Lock()
		p.offered[one.id] = one
		p.mu.Unlock()
		proposal, leads, err := p.writer.options.Clients.ExpectFor(one.id, command, one)
		if err != nil {
			one.refuse(err)
		} else if leads {
			message.Proposals = append(message.Proposals, proposal)
		}
	}
	offer()
	return nil
}

// record asks the core to hold records, those that are wrong excepted.
func (p *proposeStream) record(request *quoratepb.ProposeRequest) {
	message, refused := termConfigOf(request), termConfigOf(request)
	message.Kind, refused.Kind = consensus.MsgRecord, consensus.MsgRecorded
	unsettled := p.writer.options.KV.Unsettled(p.grpc.Context())
	for _, r := range request.Records {
		id := p.owner.Proposal(r.Session, r.Sequence)
		var proposal consensus.Proposal
		err := checkName(id)
		if err == nil && unsettled {
			err = ErrDenied
		}
		if err == nil {
			err = p.writer.room(id)
		}
		if err == nil {
			var command *kv.Command
			if command, err = p.writer.admitCheap(p.grpc.Context(), r); err == nil {
				proposal, err = p.writer.options.Clients.EncodeFor(id, command)
			}
		}
		if err == nil {
			message.Proposals = append(message.Proposals, proposal)
			continue
		}
		refused.Verdicts = append(refused.Verdicts, consensus.Verdict{
			Attempt: consensus.Attempt{Proposal: id}, Refusal: refusedHere,
		})
	}
	p.writer.options.Clients.Offer(p.grpc.Context(), p.owner.ID, message)
	p.Hear(refused)
}

// verdicts are what was heard, as far as it fits into a message; the rest stays.
func (p *proposeStream) verdicts(messages []consensus.Message) []*quoratepb.Verdicts {
	var groups []*quoratepb.Verdicts
	size := 0
	for i := range messages {
		m := &messages[i]
		group := &quoratepb.Verdicts{TermConfig: termConfig(m.Term, m.Config), Leader: m.Kind == consensus.MsgFast}
		for k := range m.Verdicts {
			if v := p.verdict(m.Kind, &m.Verdicts[k]); v != nil {
				group.Verdicts = append(group.Verdicts, v)
				size += len(v.Response)
			}
		}
		if len(group.Verdicts) > 0 {
			groups = append(groups, group)
		}
		if size > maxAnswerBytes {
			p.mu.Lock()
			p.heard.messages = append(slices.Clone(messages[i+1:]), p.heard.messages...)
			for k := range messages[i+1:] {
				bytes := verdictBytes(&messages[i+1+k])
				p.heard.held += int64(bytes)
				p.sending -= int64(bytes)
				p.wait(bytes)
			}
			p.mu.Unlock()
			break
		}
	}
	return groups
}

// verdict is one of them, with the response of etcd's API if the leader gave one; nil if there is nothing to say any more.
func (p *proposeStream) verdict(kind consensus.MessageKind, v *consensus.Verdict) *quoratepb.Verdict {
	p.mu.Lock()
	p.heard.verdicts--
	one := p.offered[v.Proposal]
	p.mu.Unlock()
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
	response := p.writer.options.KV.Response(one.kind, &result)
	answer.Response = response.AppendWire(make([]byte, 0, response.SizeWire()))
	return answer
}
