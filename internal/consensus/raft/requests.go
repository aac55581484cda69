package raft

import "github.com/quorate/quorate/internal/consensus"

// propose logs this member's own proposals, forwards them to the leader, or refuses them.
func (r *Replica) propose(proposals []consensus.Proposal) {
	switch {
	case r.lead != nil:
		r.lead.admit(proposals, r.opts.ID)
	case r.leader != consensus.NoMember:
		r.forwardProposals(proposals)
	default:
		r.refuseAll(proposals, r.opts.ID, consensus.ReasonNoLeader)
	}
}

// handlePropose takes proposals that were forwarded to this member.
func (r *Replica) handlePropose(m *consensus.Message) {
	if r.lead != nil {
		r.lead.admitBound(m)
		return
	}
	// A member forwards no forwarded proposal: two members could send it back and forth.
	r.refuseAll(m.Proposals, m.From, consensus.ReasonNoLeader)
}

// read takes this member's own reads: it answers them as the leader, or forwards them.
func (r *Replica) read(ids []uint64, spread bool) {
	switch {
	case r.lead != nil:
		for _, id := range ids {
			r.lead.addRead(id, r.opts.ID, false)
		}
	case r.leader != consensus.NoMember:
		r.forwardReads(ids, spread)
	default:
		r.out.FailedReads = append(r.out.FailedReads, ids...)
	}
}

// handleRead takes reads that were forwarded to this member.
func (r *Replica) handleRead(m *consensus.Message) {
	if r.lead == nil {
		r.send(consensus.Message{Kind: consensus.MsgReadReply, To: m.From, Reads: m.Reads, Reject: true}, false)
		return
	}
	for i := range m.Reads {
		r.lead.addRead(m.Reads[i].ID, m.From, m.Term <= r.hard.term)
	}
	if m.Query != 0 {
		r.handleLogQuery(m)
	}
}
