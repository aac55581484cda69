package raft

import "github.com/quorate/quorate/internal/consensus"

// outbox gathers what this member forwards to the leader in one Step.
type outbox struct {
	proposals []consensus.Proposal
	reads     []consensus.ReadIndex
	transfer  consensus.MemberID
	spread    bool // ask for reads more voters than the leader
	asks      bool // transfer is meant, even if it names nobody
}

// addressedRefusal is a refusal on its way to the member that forwarded the proposal.
type addressedRefusal struct {
	to      consensus.MemberID
	refusal consensus.Refusal
}

// propose takes this member's own proposals: into the log, to the leader, or back.
func (r *Replica) propose(proposals []consensus.Proposal) {
	switch {
	case r.role == Leader:
		r.admit(proposals, r.opts.ID)
	case r.leader != consensus.NoMember:
		if r.toLeader.proposals == nil {
			r.toLeader.proposals = proposals[:len(proposals):len(proposals)]
		} else {
			r.toLeader.proposals = append(r.toLeader.proposals, proposals...)
		}
	default:
		r.refuseAll(proposals, r.opts.ID, consensus.ReasonNoLeader)
	}
}

func (r *Replica) handlePropose(m *consensus.Message) {
	if r.role == Leader {
		r.admitBound(m)
		return
	}
	r.refuseAll(m.Proposals, m.From, consensus.ReasonNoLeader) // never forwarded twice: two members could play ball
}

// admitBound admits commands only if their proposer believes in the configuration in force. Changes say themselves what
// they expect.
func (r *Replica) admitBound(m *consensus.Message) {
	if m.Config == (consensus.ConfigID{}) || m.Config == r.configs.ID() {
		r.admit(m.Proposals, m.From)
		return
	}
	for i := range m.Proposals {
		p := &m.Proposals[i]
		if p.Kind == consensus.EntryConfig {
			r.admit(m.Proposals[i:i+1], m.From)
			continue
		}
		r.refuse(p.ID, m.From, consensus.ReasonStaleConfig)
	}
}

// handleRefusals hands them to the shell, and binds what is proposed from now on to the configuration that the leader
// named, unless this member's log says so by now: the shell proposes again what was refused for that alone.
func (r *Replica) handleRefusals(m *consensus.Message) {
	for i := range m.Refusals {
		if m.Refusals[i].Reason != consensus.ReasonStaleConfig || m.From != r.leader {
			continue
		}
		if r.boundTo = m.Refusals[i].Config; r.boundTo == r.configs.ID() {
			r.boundTo = consensus.ConfigID{}
		}
	}
	r.out.Refusals = append(r.out.Refusals, m.Refusals...)
}

// admit appends proposals to the leader's log.
func (r *Replica) admit(proposals []consensus.Proposal, from consensus.MemberID) {
	for i := range proposals {
		p := &proposals[i]
		if reason := r.admitOne(p); reason != consensus.ReasonNone {
			r.refuse(p.ID, from, reason)
		}
	}
}

func (r *Replica) admitOne(p *consensus.Proposal) consensus.RefusalReason {
	switch {
	case r.transferee != consensus.NoMember || (p.Kind == consensus.EntryCommand && r.feedsHeir()):
		return consensus.ReasonNoLeader
	case p.Kind != consensus.EntryCommand && p.Kind != consensus.EntryConfig:
		return consensus.ReasonBadRequest
	case r.uncommitted > 0 && r.uncommitted+len(p.Payload) > r.opts.MaxUncommittedBytes,
		r.log.Full() && p.Kind == consensus.EntryCommand:
		return consensus.ReasonBusy
	case p.Kind == consensus.EntryConfig:
		return r.proposeChange(p)
	}
	index := r.appendEntry(consensus.Entry{
		Kind: p.Kind, Proposal: p.ID, Proposer: p.Proposer, Payload: p.Payload,
	})
	r.owe(p.Proposer, index)
	return consensus.ReasonNone
}

func (r *Replica) refuseAll(proposals []consensus.Proposal, to consensus.MemberID, reason consensus.RefusalReason) {
	for i := range proposals {
		r.refuse(proposals[i].ID, to, reason)
	}
}

func (r *Replica) refuse(id consensus.ProposalID, to consensus.MemberID, reason consensus.RefusalReason) {
	refusal := consensus.Refusal{ID: id, Reason: reason, Config: r.configs.ID()}
	if to == r.opts.ID {
		r.out.Refusals = append(r.out.Refusals, refusal)
		return
	}
	r.refusing = append(r.refusing, addressedRefusal{to, refusal})
}

// flushRefusals sends the refusals of this Step, those in a row to one member in one message.
func (r *Replica) flushRefusals() {
	for i := 0; i < len(r.refusing); {
		m := consensus.Message{Kind: consensus.MsgProposeReply, To: r.refusing[i].to}
		for ; i < len(r.refusing) && r.refusing[i].to == m.To; i++ {
			m.Refusals = append(m.Refusals, r.refusing[i].refusal)
		}
		r.send(m, false)
	}
	r.refusing = r.refusing[:0]
}

// flushForwards sends what waits for the leader; leadership may have moved within the Step.
func (r *Replica) flushForwards() {
	box := r.toLeader
	r.toLeader = outbox{}
	if r.leader == consensus.NoMember || r.leader == r.opts.ID {
		r.refuseAll(box.proposals, r.opts.ID, consensus.ReasonNoLeader)
		for _, read := range box.reads {
			r.out.FailedReads = append(r.out.FailedReads, read.ID)
		}
		return
	}
	for rest := box.proposals; len(rest) > 0; {
		n := fitting(rest, r.opts.MaxMessageBytes)
		r.send(consensus.Message{Kind: consensus.MsgPropose, To: r.leader, Config: r.boundTo, Proposals: rest[:n:n]}, false)
		rest = rest[n:]
	}
	if len(box.reads) > 0 {
		m := consensus.Message{Kind: consensus.MsgRead, To: r.leader, Reads: box.reads}
		if box.spread {
			m.Query = r.askVoters(box.reads)
		}
		r.send(m, false)
		for _, read := range box.reads {
			r.forwarded = append(r.forwarded, read.ID)
		}
	}
	if box.asks {
		r.send(consensus.Message{Kind: consensus.MsgTransfer, To: r.leader, Target: box.transfer}, false)
	}
}

// fitting returns how many of proposals go into one message of about maxBytes, at least one.
func fitting(proposals []consensus.Proposal, maxBytes int) int {
	n, size := 1, len(proposals[0].Payload)
	for n < len(proposals) && size+len(proposals[n].Payload) <= maxBytes {
		size += len(proposals[n].Payload)
		n++
	}
	return n
}
